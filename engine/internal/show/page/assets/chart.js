import { element } from "./base.js";

// Chartist sets styles by attributes, which the page's policy forbids; as properties they are allowed.
const setAttributes = Chartist.Svg.prototype.attr;
Chartist.Svg.prototype.attr = function (attributes, ns) {
  if (typeof attributes === "string" || !("style" in attributes)) return setAttributes.call(this, attributes, ns);
  const { style, ...others } = attributes;
  if (style) this._node.style.cssText = style;
  return setAttributes.call(this, others, ns);
};

// chart draws lines through points, and has its figures as a table, which the reader may unfold.
//
// options: title, about (a sentence that says what it shows), x and y: { name, low, high, ticks,
// shown: (value) => text }, series: [{ name, class, points: [{ x, y, about }] }], figures: a table.
export function chart({ title, about, x, y, series, figures }) {
  const place = element("div", { class: "drawing", "aria-hidden": "true" });
  const options = {
    axisX: { type: Chartist.FixedScaleAxis, low: x.low, high: x.high, ticks: x.ticks, labelInterpolationFnc: x.shown, showGrid: true },
    axisY: { type: Chartist.FixedScaleAxis, low: y.low, high: y.high, ticks: y.ticks, labelInterpolationFnc: y.shown, offset: 52 },
    lineSmooth: false, fullWidth: true, chartPadding: { top: 12, right: 36, bottom: 4, left: 0 },
  };
  const drawn = new Chartist.LineChart(place,
    { series: series.map((s) => ({ name: s.name, className: s.class, data: s.points.map((p) => ({ x: p.x, y: p.y, meta: p.about })) })) }, options);
  drawn.on("draw", (part) => {
    if (part.type !== "point") return;
    const about = series[part.seriesIndex].points[part.index]?.about;
    const tip = document.createElementNS("http://www.w3.org/2000/svg", "title");
    tip.textContent = about ?? "";
    part.element._node.append(tip);
  });
  return element("figure", { class: "chart panel" },
    element("figcaption", {}, element("h3", {}, title), element("p", { class: "muted" }, about)),
    element("p", { class: "axis", "aria-hidden": "true" }, y.name), place, element("p", { class: "axis across", "aria-hidden": "true" }, x.name),
    element("ul", { class: "legend", "aria-hidden": "true" }, series.map((s) => element("li", { class: s.class }, s.name))),
    element("details", {}, element("summary", {}, "The figures"), figures));
}
