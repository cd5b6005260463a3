type Fields = Record<string, unknown>;

/** One page if awaited, every item of every page if iterated. Nothing is requested before that. */
export interface Pages<Page, Item> extends PromiseLike<Page>, AsyncIterable<Item> {}

interface AnyPage {
  data: unknown[];
  nextCursor?: string | null;
  hasMore?: boolean;
}

type Fetch = (fields: Fields) => Promise<AnyPage>;

/** Pages by cursor, or by seq in the order that the service uses if neither `before` nor `after` is given. */
export type PageKind = 'cursor' | 'ascending' | 'descending';

export function pages(kind: PageKind, fields: Fields, fetch: Fetch): Pages<unknown, unknown> {
  return {
    then: (resolve, reject) => fetch(fields).then(resolve, reject),
    [Symbol.asyncIterator]: () => (kind === 'cursor' ? byCursor(fields, fetch) : bySeq(fields, kind, fetch)),
  };
}

async function* byCursor(fields: Fields, fetch: Fetch): AsyncGenerator<unknown, void> {
  let { cursor } = fields;
  for (;;) {
    const page = await fetch({ ...fields, cursor });
    yield* page.data;
    const next = page.nextCursor ?? null;
    // A cursor that does not move would loop for ever.
    if (next === null || next === cursor) return;
    cursor = next;
  }
}

/** Upwards if only `after` is given, downwards if only `before` is given, otherwise in the list's own order. */
async function* bySeq(
  fields: Fields,
  kind: Exclude<PageKind, 'cursor'>,
  fetch: Fetch,
): AsyncGenerator<unknown, void> {
  const up = fields['after'] !== undefined;
  const down = fields['before'] !== undefined;
  const upwards = up === down ? kind === 'ascending' : up;
  let bound: number | undefined;
  for (;;) {
    const page = await fetch(
      bound === undefined ? fields : { ...fields, [upwards ? 'after' : 'before']: bound },
    );
    const items = (page.data as { seq: number }[]).toSorted((a, b) =>
      upwards ? a.seq - b.seq : b.seq - a.seq,
    );
    yield* items;
    const last = items.at(-1)?.seq;
    if (!page.hasMore || last === undefined || last === bound) return;
    bound = last;
  }
}
