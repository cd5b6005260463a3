import MiniSearch from 'minisearch';
import { searchOptions } from '../search-options.ts';
import type { Page } from './page.ts';

const longest = 160;

/** The index that the browser loads when somebody searches. */
export function searchIndex(all: Page[]): string {
  const search = new MiniSearch(searchOptions);
  const seen = new Set<string>();
  for (const page of all)
    for (const { id, title, text } of page.found) {
      const url = `/docs${page.path === '' ? '' : `/${page.path}`}${id === '' ? '' : `#${id}`}`;
      // Several things may stand in one place: the first is found there.
      const key = `${url} ${title}`;
      if (seen.has(key)) continue;
      seen.add(key);
      search.add({
        id: search.documentCount,
        url,
        title,
        where: page.title,
        text,
        excerpt: text.trim().slice(0, longest),
      });
    }
  return JSON.stringify(search);
}
