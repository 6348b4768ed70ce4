const at = (id) => document.getElementById(id);
const state = Object.fromEntries(WIDGET.sliders.map((slider) => [slider.key, slider.start]));

const numberText = (value, decimals, useGrouping = true) => {
  const places = decimals ?? WIDGET.digits.find(([least]) => Math.abs(value) >= least || value === 0)?.[1];
  if (!Number.isFinite(value)) return "\u2013";
  const options = {
    minimumFractionDigits: places, maximumFractionDigits: places, roundingMode: "halfEven", useGrouping,
  };
  return new Intl.NumberFormat("en-GB", options).format(value + 0);
};

const outputText = (output, values) => {
  if (output.words) {
    const [first, second] = [values[output.first], values[output.second]];
    const even = Math.abs(first - second) <= output.even * Math.max(first, second);
    return output.words[even ? 2 : first < second ? 0 : 1];
  }
  const numbers = output.keys.map((key) => numberText(values[key] * output.factor, output.decimals));
  return output.text.replace(/\{\}/g, () => numbers.shift());
};

const said = (values) => Object.fromEntries(WIDGET.outputs.map((output) => [output.key, outputText(output, values)]));
const filled = (text, words) => text.replace(/\{(\w+)\}/g, (_, key) => words[key]);
const following = () => worked({ ...WIDGET.constants, ...state });
const before = said(following());

const drawStrip = (values) => {
  const whole = WIDGET.strip.parts.reduce((sum, part) => sum + values[part.key], 0);
  const percent = (value) => `${((100 * value) / whole).toFixed(3)}%`;
  const place = (id, left, width) => {
    at(id).setAttribute("x", percent(left));
    at(id).setAttribute("width", percent(Math.max(width, 0)));
  };
  let left = 0;
  WIDGET.strip.parts.forEach((part, index) => {
    const [size, idle] = [values[part.key], part.idle ? values[part.idle] : 0];
    place(`w-part-${index}`, left, size);
    place(`w-idle-${index}`, left + size - idle, idle);
    left += size;
  });
  if (WIDGET.strip.mark) {
    const mark = percent(values[WIDGET.strip.mark]);
    at("w-mark").setAttribute("x1", mark);
    at("w-mark").setAttribute("x2", mark);
  }
};

// The summary is read out, so it follows only when the slider rests.
let resting = 0;
const summarise = (words) => {
  clearTimeout(resting);
  resting = setTimeout(() => {
    const text = filled(WIDGET.summary, words);
    if (at("w-summary").textContent !== text) at("w-summary").textContent = text;
  }, 150);
};

const draw = () => {
  const values = following();
  const words = said(values);
  for (const { key } of WIDGET.outputs) {
    at(`w-out-${key}`).textContent = words[key];
    const was = at(`w-was-${key}`);
    was.hidden = words[key] === before[key];
    was.textContent = was.hidden ? "" : `plan: ${before[key]}`;
  }
  drawStrip(values);
  summarise(words);
};

const nearest = (stops, value) =>
  stops.reduce((best, stop, index) => (Math.abs(stop - value) < Math.abs(stops[best] - value) ? index : best), 0);

const fieldText = (slider) => numberText(state[slider.key] * slider.factor, slider.decimals, false);

const show = (slider, typed) => {
  const value = state[slider.key];
  const text = `${numberText(value * slider.factor, slider.decimals)} ${slider.unit}`;
  const range = at(`w-${slider.key}`);
  range.value = nearest(slider.stops, value);
  range.setAttribute("aria-valuetext", text);
  range.closest(".slider").querySelector(".printed").textContent = text;
  if (!typed) at(`w-${slider.key}-number`).value = fieldText(slider);
};

const move = (slider, value, typed = false) => {
  state[slider.key] = Math.min(Math.max(value, slider.least), slider.most);
  show(slider, typed);
  draw();
};

const rounded = (slider, shown) => Number(shown.toFixed(slider.decimals)) / slider.factor;

for (const slider of WIDGET.sliders) {
  const [range, number] = [at(`w-${slider.key}`), at(`w-${slider.key}-number`)];
  range.addEventListener("input", () => move(slider, slider.stops[range.valueAsNumber]));
  number.addEventListener("input", () => {
    const value = rounded(slider, number.valueAsNumber);
    if (value >= slider.least && value <= slider.most) move(slider, value, true);
  });
  number.addEventListener("change", () => {
    if (Number.isNaN(number.valueAsNumber)) show(slider);
    else if (number.value !== fieldText(slider)) move(slider, rounded(slider, number.valueAsNumber));
  });
}

at("w-reset").addEventListener("click", () => {
  for (const slider of WIDGET.sliders) {
    state[slider.key] = slider.start;
    show(slider);
  }
  draw();
});

for (const slider of WIDGET.sliders) show(slider);
draw();
at("widget").classList.add("live");
