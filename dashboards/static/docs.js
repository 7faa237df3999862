// Shows the description of the API; requests from here carry the browser's own session.
"use strict";
(() => {
  const place = document.getElementById("api");
  const html = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");

  // Swagger UI is dark where <html> has its class.
  const follow = () => {
    const theme = html.dataset.theme || (prefersDark.matches ? "dark" : "light");
    html.classList.toggle("dark-mode", theme === "dark");
  };
  follow();
  prefersDark.addEventListener("change", follow);
  new MutationObserver(follow).observe(html, { attributeFilter: ["data-theme"] });

  // Names and keys for what Swagger UI leaves without: lists to choose from, links within buttons, code that scrolls.
  const repair = () => {
    for (const list of place.querySelectorAll("select:not([aria-label])")) {
      list.setAttribute("aria-label", list.closest("tr")?.dataset.paramName || "Example or format");
    }
    for (const link of place.querySelectorAll("button a[href]")) link.removeAttribute("href");
    for (const code of place.querySelectorAll("pre:not([tabindex])")) code.tabIndex = 0;
  };
  new MutationObserver(repair).observe(place, { childList: true, subtree: true });

  // Its own layout has a second <main> and a heading besides the page's.
  const layout = ({ React: { createElement }, getComponent }) => ({
    components: {
      Layout: () => {
        const part = (name) => createElement(getComponent(name, true), { key: name });
        const parts = ["SvgAssets", "errors", "AuthorizeBtnContainer", "FilterContainer", "operations", "Models"];
        return createElement("div", { className: "swagger-ui" }, parts.map(part));
      },
    },
  });

  SwaggerUIBundle({
    url: place.dataset.url,
    domNode: place,
    presets: [SwaggerUIBundle.presets.apis],
    plugins: [layout],
    layout: "Layout",
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    filter: true,
    syntaxHighlight: false, // its colours lack contrast
    tryItOutEnabled: true,
    validatorUrl: null,
  });
})();
