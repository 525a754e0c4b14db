import { element, load } from "./base.js";

// The library has a main element of its own, and a page has one.
const shown = document.getElementById("docs");
document.getElementById("main").replaceWith(element("div", { id: "main" }, shown));
shown.loadSpec(await load("data"));
