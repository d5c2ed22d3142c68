// What moves sideways, such as a wide table or a long line of code, says so, and Tab reaches it: the arrow keys move it.
"use strict";

const WIDE = "article pre, article div.math, article .table-wrapper, div.output, .distsim-figure, .scroll";

const markScrolling = () => {
  for (const element of document.querySelectorAll(WIDE)) {
    const moves = element.scrollWidth > element.clientWidth + 1;
    element.classList.toggle("distsim-moves", moves);
    if (element.classList.contains("distsim-figure")) continue; // Tab reaches every figure
    if (moves) element.tabIndex = 0;
    else element.removeAttribute("tabindex");
  }
};
addEventListener("load", markScrolling);
addEventListener("resize", markScrolling);
