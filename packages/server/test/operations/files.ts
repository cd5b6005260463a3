import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A file of the repository that operators copy or read. */
export const repositoryPath = (file: string): string =>
  fileURLToPath(new URL(`../../../../${file}`, import.meta.url));
export const repositoryFile = (file: string): string => readFileSync(repositoryPath(file), 'utf8');

/** The names of metrics in an expression, with the endings of histograms taken off. */
export const metricNames = (text: string): Set<string> =>
  new Set(
    [...text.matchAll(/\bparley_[a-z0-9_]+/g)].map(([name]) =>
      name
        .replace(/_seconds_(bucket|sum|count)$/, '_seconds')
        .replace(/_messages_(bucket|sum|count)$/, '_messages'),
    ),
  );
