// Nothing of the page needs this: a line that follows the pointer and says the time, and a button that copies.
(function () {
  var lanes = document.querySelector(".lanes"), under = document.querySelector(".under");
  var cross = document.querySelector(".cross"), readout = document.getElementById("readout");
  var end = lanes && parseFloat(lanes.dataset.end);
  var faults = Array.prototype.map.call(document.querySelectorAll("a.fault"), function (a) {
    return { from: +a.dataset.from, to: +a.dataset.to, text: a.title.split(", ").slice(1).join(", ") };
  });
  function stamp(t) {
    return t < 120 ? t.toFixed(1) + " s" : Math.floor(t / 60) + ":" + ("0" + (t % 60).toFixed(1)).slice(-4);
  }
  if (lanes && end) {
    lanes.addEventListener("pointermove", function (e) {
      var box = under.getBoundingClientRect(), share = (e.clientX - box.left) / box.width;
      cross.hidden = share < 0 || share > 1;
      if (cross.hidden) { readout.textContent = ""; return; }
      var t = share * end, on = faults.filter(function (f) { return f.from <= t && t < f.to; });
      cross.style.left = 100 * share + "%";
      readout.textContent = stamp(t) + (on.length ? " · " + on.map(function (f) { return f.text; }).join(" · ") : "");
    });
    lanes.addEventListener("pointerleave", function () { cross.hidden = true; readout.textContent = ""; });
  }
  var copy = document.getElementById("copy");
  if (copy && navigator.clipboard) {
    copy.hidden = false;
    copy.addEventListener("click", function () {
      navigator.clipboard.writeText(document.getElementById("again").textContent).then(function () {
        copy.textContent = "copied";
        setTimeout(function () { copy.textContent = "copy"; }, 1500);
      });
    });
  }
})();
