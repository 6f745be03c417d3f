// Light or dark: as the system says, or as was chosen here.
const KEY = "headwater-theme";

const system = (): string => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

export function applyTheme(): void {
  document.documentElement.dataset.theme = localStorage.getItem(KEY) ?? system();
}

export function switchTheme(): void {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem(KEY, next);
  applyTheme();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
