// A table that fits needs no stop of the Tab key; one that scrolls does.
const regions = document.querySelectorAll(".scroll");
const stops = () => {
  for (const region of regions) {
    if (region.scrollWidth > region.clientWidth) region.setAttribute("tabindex", "0");
    else region.removeAttribute("tabindex");
  }
};
stops();
addEventListener("resize", stops);
for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", stops);
