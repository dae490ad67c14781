// Sets language and theme before the first paint: what was chosen on this device, else what browser and system say.
(function () {
  var root = document.documentElement;
  var language = localStorage.getItem("weiche.language");
  if (language !== "de" && language !== "en") language = /^de\b/.test(navigator.language) ? "de" : "en";
  root.lang = language;
  var theme = localStorage.getItem("weiche.theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
})();
