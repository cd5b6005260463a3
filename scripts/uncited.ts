/** A declaration file's text without citations: users have no specification to look them up in. */
export function uncited(text: string): string {
  return text
    .replaceAll(/ ?\((?:SPEC|DECISIONS|PITFALLS)[^)]*\)/g, '')
    .replaceAll(/(?:SPEC|DECISIONS|PITFALLS)(?: \d[\d.]*)?(?:, [^:*\n]*)?(?:: |(?=\. |\.\n))/g, '');
}
