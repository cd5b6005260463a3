const rule = '[a-z]+#[a-z][a-z0-9-]*';
const inBrackets = new RegExp(` ?\\(${rule}[^)]*\\)`, 'g');
const before = new RegExp(`${rule}(?:(?:, | and )${rule})*(?:, [^:.*\\n]*)?(?:: |\\. ?)`, 'g');

/** A declaration file's text without citations of docs/reference: the packages do not carry it. */
export const uncited = (text: string): string => text.replaceAll(inBrackets, '').replaceAll(before, '');
