// The search: loaded, with its index, when it is first opened.
import MiniSearch from 'minisearch';
import type { SearchResult } from 'minisearch';
import { searchOptions } from '../src/search-options.ts';
import type { Found } from '../src/search-options.ts';
import { all, make } from './dom.ts';

type Hit = SearchResult & Pick<Found, 'url' | 'title' | 'where' | 'excerpt'>;
const most = 20;

let index: Promise<MiniSearch<Found>> | undefined;
let dialog: HTMLDialogElement | undefined;

function load(): Promise<MiniSearch<Found>> {
  index ??= fetch(document.body.dataset['index'] ?? '')
    .then((answer) => {
      if (!answer.ok) throw new Error(`The search index could not be loaded (${answer.status}).`);
      return answer.text();
    })
    .then((text) => MiniSearch.loadJSON(text, searchOptions));
  index.catch(() => (index = undefined));
  return index;
}

export async function openSearch(): Promise<void> {
  dialog ??= build();
  if (!dialog.open) dialog.showModal();
  const input = dialog.querySelector('input')!;
  input.select();
  await load().catch(() => undefined);
}

function build(): HTMLDialogElement {
  const input = make('input', {
    type: 'search',
    placeholder: 'Search the documentation',
    autocomplete: 'off',
  });
  input.setAttribute('aria-label', 'Search the documentation');
  const said = make('p', { className: 'said' });
  said.setAttribute('role', 'status');
  const list = make('ul');
  const close = make('button', { type: 'button', className: 'quiet', textContent: 'Close' });
  const box = make(
    'dialog',
    { className: 'search' },
    make('div', { className: 'search-head' }, input, close),
    said,
    list,
  );
  box.setAttribute('aria-label', 'Search');

  let last = '';
  const show = async (): Promise<void> => {
    const words = input.value.trim();
    last = words;
    if (words === '') {
      said.textContent = '';
      list.replaceChildren();
      return;
    }
    try {
      const found = (await load()).search(words) as Hit[];
      if (last !== words) return;
      list.replaceChildren(...found.slice(0, most).map(row));
      said.textContent = found.length === 0 ? `No results for “${words}”.` : `${found.length} found`;
    } catch (error) {
      said.textContent = error instanceof Error ? error.message : String(error);
    }
  };
  input.addEventListener('input', () => void show());
  close.addEventListener('click', () => box.close());
  box.addEventListener('click', (event) => {
    const target = event.target as Element;
    if (target === box || target.closest('li a')) box.close();
  });
  box.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const rows = all<HTMLAnchorElement>('a', list);
    if (event.key === 'Enter' && document.activeElement === input) rows[0]?.click();
    if (step === undefined || rows.length === 0) return;
    event.preventDefault();
    const at = rows.indexOf(document.activeElement as HTMLAnchorElement) + step;
    (rows[at] ?? (at < 0 ? input : rows.at(-1)))?.focus();
  });
  document.body.append(box);
  return box;
}

const row = ({ url, title, where, excerpt }: Hit): HTMLLIElement =>
  make(
    'li',
    {},
    make(
      'a',
      { href: url },
      make('strong', { textContent: title }),
      make('span', { textContent: where }),
      make('small', { textContent: excerpt }),
    ),
  );
