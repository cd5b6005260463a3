// The script of every page: theme, menu, search, tabs, copying, and trying a call. What is large is loaded when it is needed.
import '@fontsource-variable/geist/index.css';
import '@fontsource-variable/geist-mono/index.css';
import '@parley/react/tokens.css';
import './style.css';
import { all, stored } from './dom.ts';

const root = document.documentElement;

// Colours: those of the system, until somebody chooses others.
const theme = document.querySelector<HTMLButtonElement>('button.theme')!;
const dark = matchMedia('(prefers-color-scheme: dark)');
const showTheme = (name: string): void => {
  root.dataset['theme'] = name;
  theme.setAttribute('aria-pressed', String(name === 'dark'));
};
showTheme(root.dataset['theme'] ?? 'light');
dark.addEventListener('change', () => {
  if (stored(localStorage, 'parley-docs-theme') === '') showTheme(dark.matches ? 'dark' : 'light');
});
theme.addEventListener('click', () => {
  const next = root.dataset['theme'] === 'dark' ? 'light' : 'dark';
  stored(localStorage, 'parley-docs-theme', next);
  showTheme(next);
});

// The menu of a phone.
const menu = document.querySelector<HTMLButtonElement>('button.menu')!;
const showMenu = (open: boolean): void => {
  document.body.classList.toggle('menu-open', open);
  menu.setAttribute('aria-expanded', String(open));
};
menu.addEventListener('click', () => showMenu(!document.body.classList.contains('menu-open')));
document.getElementById('menu')!.addEventListener('click', (event) => {
  if ((event.target as Element).closest('a')) showMenu(false);
});
document.querySelector('.menu-list a[aria-current]')?.scrollIntoView({ block: 'center' });
scrollTo({ top: location.hash === '' ? 0 : scrollY });

// Tabs: a language that was chosen once is chosen everywhere.
function choose(name: string): void {
  for (const block of all<HTMLElement>('.code')) {
    const panels = all<HTMLElement>(':scope > pre', block);
    const shown = panels.find((panel) => panel.dataset['tab'] === name);
    if (panels.length < 2 || !shown) continue;
    for (const panel of panels) panel.classList.toggle('on', panel === shown);
    for (const button of all<HTMLElement>('.tabs button', block))
      button.setAttribute('aria-pressed', String(button.dataset['tab'] === name));
  }
}
const language = stored(localStorage, 'parley-docs-language');
if (language !== '') choose(language);

document.addEventListener('click', (event) => {
  const button = (event.target as Element).closest('button');
  if (!button) return;
  if (button.matches('.tabs button')) {
    const top = button.getBoundingClientRect().top;
    choose(stored(localStorage, 'parley-docs-language', button.dataset['tab'] ?? ''));
    // Blocks above may have become longer: what was clicked stays where it is.
    scrollBy(0, button.getBoundingClientRect().top - top);
  } else if (button.matches('.copy')) void copy(button);
  else if (button.matches('.find')) void search();
});

async function copy(button: HTMLButtonElement): Promise<void> {
  const code = button.closest('.code')?.querySelector('pre.on')?.textContent ?? '';
  try {
    await navigator.clipboard.writeText(code);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Press Ctrl+C';
    getSelection()?.selectAllChildren(button.closest('.code')!.querySelector('pre.on')!);
  }
  setTimeout(() => (button.textContent = 'Copy'), 1500);
}

async function search(): Promise<void> {
  const { openSearch } = await import('./search.ts');
  await openSearch();
}
document.addEventListener('keydown', (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? '');
  const asked = (event.key === '/' && !typing) || (event.key === 'k' && (event.ctrlKey || event.metaKey));
  if (!asked || event.altKey) return;
  event.preventDefault();
  void search();
});

// Marks the part that one reads: the last that begins above a line in the upper part of the screen.
const links = new Map(
  all<HTMLAnchorElement>('.parts a, .contents a').map((link) => [
    decodeURIComponent(link.hash.slice(1)),
    link,
  ]),
);
const parts = [...links.keys()].map((id) => document.getElementById(id)).filter((one) => one !== null);
let current: Element | undefined;
const observer = new IntersectionObserver(
  () => {
    const part = parts.findLast((one) => one.getBoundingClientRect().top <= innerHeight / 4);
    const link = part && links.get(part.id);
    if (link === current) return;
    current?.removeAttribute('aria-current');
    link?.setAttribute('aria-current', 'true');
    current = link;
  },
  { rootMargin: '0px 0px -75% 0px', threshold: [0, 1] },
);
for (const part of parts) observer.observe(part);

if (document.querySelector('[data-call]'))
  void import('./try.ts').then(({ offerToTry }) => all<HTMLElement>('[data-call]').forEach(offerToTry));
