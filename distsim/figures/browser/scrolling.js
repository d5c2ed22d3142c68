// Marks each wide table and figure that scrolls sideways, so that its style says so, and lets Tab reach what scrolls.
"use strict";

const WIDE = ".table-wrapper, .distsim-figure, .distsim-numbers, div.output, article pre, div.math, .scroll";

function mark(box) {
  const may = ["auto", "scroll"].includes(getComputedStyle(box).overflowX);
  const scrolls = may && box.scrollWidth > box.clientWidth + 1;
  box.classList.toggle("distsim-scrolls", scrolls);
  if (scrolls) box.tabIndex = 0;
  else if (!box.matches(".distsim-figure")) box.removeAttribute("tabindex");
}

const sizes = new ResizeObserver((changes) => {
  for (const { target } of changes) if (target.isConnected) mark(target.closest(WIDE));
});

for (const box of document.querySelectorAll(WIDE)) {
  const watch = () => { for (const child of box.children) sizes.observe(child); };
  new MutationObserver(watch).observe(box, { childList: true });
  sizes.observe(box);
  watch();
}
