/** Light or dark: as the system says, until the user chooses. */

const key = 'parley-demo-theme';
const apply = (theme: string): void => void (document.documentElement.dataset['theme'] = theme);

export function startTheme(): void {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const follow = (): void => apply(localStorage.getItem(key) ?? (system.matches ? 'dark' : 'light'));
  system.addEventListener('change', follow);
  follow();
}

export function toggleTheme(): void {
  const theme = document.documentElement.dataset['theme'] === 'dark' ? 'light' : 'dark';
  localStorage.setItem(key, theme);
  apply(theme);
}
