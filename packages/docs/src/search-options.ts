import type { Options } from 'minisearch';

/** What can be found. The builder and the browser must agree on it. */
export interface Found {
  id: number;
  url: string;
  title: string;
  where: string;
  text: string;
  excerpt: string;
}

export const searchOptions: Options<Found> = {
  fields: ['title', 'where', 'text'],
  storeFields: ['url', 'title', 'where', 'excerpt'],
  // `messages.send` is found by its name and by its parts.
  tokenize: (text) => {
    const words = text.toLowerCase().split(/[^\p{L}\p{N}_.-]+/u);
    return words
      .flatMap((word) => (/[._-]/.test(word) ? [word, ...word.split(/[._-]+/)] : [word]))
      .filter(Boolean);
  },
  searchOptions: {
    boost: { title: 4, where: 2 },
    prefix: true,
    fuzzy: (term) => (term.length > 4 ? 0.2 : false),
    combineWith: 'AND',
  },
};
