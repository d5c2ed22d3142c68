// What moves sideways, such as a long line of code, is reached by Tab, so that the arrow keys move it.
"use strict";

const markScrolling = () => {
  for (const element of document.querySelectorAll("article pre, article div.math, article .table-wrapper, div.output")) {
    if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
    else element.removeAttribute("tabindex");
  }
};
markScrolling();
addEventListener("resize", markScrolling);
