/** Metadata is kept as the text it came as; none is an empty object. */
export const parseMetadata = (text: string | null): Record<string, unknown> =>
  text === null ? {} : (JSON.parse(text) as Record<string, unknown>);
