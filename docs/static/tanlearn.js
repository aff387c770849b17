// What shows a picture only is named for those who hear the page.
document.addEventListener("DOMContentLoaded", () => {
  for (const toggle of document.querySelectorAll("details > summary:not([aria-label])")) {
    const link = toggle.closest("li")?.querySelector("a");
    if (!toggle.textContent.trim() && link) toggle.setAttribute("aria-label", `Pages of ${link.textContent.trim()}`);
  }
});
