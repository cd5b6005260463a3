/** Metadata is stored as the text that was sent; null stands for an empty object. */
export const parseMetadata = (text: string | null): Record<string, unknown> =>
  text === null ? {} : (JSON.parse(text) as Record<string, unknown>);
