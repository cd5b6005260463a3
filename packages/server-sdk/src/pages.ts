type Fields = Record<string, unknown>;

/** One page when awaited, every item of every page when iterated. Nothing is requested before either. */
export interface Pages<Page, Item> extends PromiseLike<Page>, AsyncIterable<Item> {}

interface AnyPage {
  data: unknown[];
  nextCursor?: string | null;
  hasMore?: boolean;
}

type Fetch = (fields: Fields) => Promise<AnyPage>;

export function pages(
  kind: 'cursor' | 'seq',
  acceptsBefore: boolean,
  fields: Fields,
  fetch: Fetch,
): Pages<unknown, unknown> {
  return {
    then: (resolve, reject) => fetch(fields).then(resolve, reject),
    [Symbol.asyncIterator]: () =>
      kind === 'cursor' ? byCursor(fields, fetch) : bySeq(fields, acceptsBefore, fetch),
  };
}

async function* byCursor(fields: Fields, fetch: Fetch): AsyncGenerator<unknown, void> {
  let { cursor } = fields;
  for (;;) {
    const page = await fetch({ ...fields, cursor });
    yield* page.data;
    const next = page.nextCursor ?? null;
    // A cursor that does not move would go on for ever.
    if (next === null || next === cursor) return;
    cursor = next;
  }
}

/** Upwards (ascending) from `after`, else downwards (descending) from `before` or the newest. */
async function* bySeq(fields: Fields, acceptsBefore: boolean, fetch: Fetch): AsyncGenerator<unknown, void> {
  const upwards = fields.after !== undefined || !acceptsBefore;
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
