import type { Html } from './html.ts';
import type { Entry } from './navigation.ts';

export interface Page extends Entry {
  /** Guides have a reading column; a reference has code beside its text. */
  kind: 'guide' | 'reference';
  body: Html;
  /** The parts of the page: under its entry in the menu (reference), or beside the text (guide). */
  parts: { id: string; label: Html }[];
  /** What the search finds on it. */
  found: { id: string; title: string; text: string }[];
}
