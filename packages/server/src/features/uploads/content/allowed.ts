import type { Kind } from './detect.ts';

interface Rule {
  kind: Exclude<Kind, 'blocked'> | 'any';
  /** The kinds that the bytes may turn out to be; null stands for no known format. */
  found: (string | null)[];
}

const one = (kind: Rule['kind'], ...found: (string | null)[]): Rule => ({ kind, found });
const image = one(
  'image',
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/avif',
  'image/heic',
  'image/bmp',
);
const video = one('video', 'video/mp4', 'video/quicktime', 'video/webm', 'video/3gpp');
// Recorders write audio into video containers, and MP3 files begin with many different bytes.
const audio = one(
  'audio',
  'audio/mpeg',
  'audio/ogg',
  'audio/wav',
  'audio/mp4',
  'audio/flac',
  'audio/aac',
  'video/mp4',
  'video/webm',
  'video/3gpp',
  null,
);
const text = one('document', null);
const zip = one('document', 'application/zip');
// An encrypted office file is a CFB container, whatever its version.
const office = one('document', 'application/zip', 'application/x-cfb');
const gzip = one('document', 'application/gzip');

/** uploads#types: the MIME allowlist. Declared types that are not here are refused. */
const allowed: Record<string, Rule> = {
  'image/png': image,
  'image/jpeg': image,
  'image/jpg': image,
  'image/gif': image,
  'image/webp': image,
  'image/avif': image,
  'image/heic': image,
  'image/heif': image,
  'image/bmp': image,
  'video/mp4': video,
  'video/quicktime': video,
  'video/webm': video,
  'video/3gpp': video,
  'audio/mpeg': audio,
  'audio/mp3': audio,
  'audio/ogg': audio,
  'audio/wav': audio,
  'audio/wave': audio,
  'audio/x-wav': audio,
  'audio/mp4': audio,
  'audio/m4a': audio,
  'audio/x-m4a': audio,
  'audio/flac': audio,
  'audio/x-flac': audio,
  'audio/aac': audio,
  'audio/webm': audio,
  'application/pdf': one('document', 'application/pdf'),
  'application/rtf': one('document', 'application/rtf'),
  'text/rtf': one('document', 'application/rtf'),
  'text/plain': text,
  'text/csv': text,
  'text/markdown': text,
  'text/calendar': text,
  'text/vcard': text,
  'application/json': text,
  'application/zip': zip,
  'application/x-zip-compressed': zip,
  'application/epub+zip': zip,
  'application/gzip': gzip,
  'application/x-gzip': gzip,
  'application/msword': office,
  'application/vnd.ms-excel': office,
  'application/vnd.ms-powerpoint': office,
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': office,
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': office,
  'application/vnd.openxmlformats-officedocument.presentationml.presentation': office,
  'application/vnd.oasis.opendocument.text': office,
  'application/vnd.oasis.opendocument.spreadsheet': office,
  'application/vnd.oasis.opendocument.presentation': office,
  // Browsers declare this for a file they do not know; its name and bytes decide.
  'application/octet-stream': one('any'),
};

const words = (list: string) => list.trim().split(/\s+/);

/** Extensions of files that would be run, or rendered as a page. They are refused at the end of a name and inside it. */
const active = new Set(
  words(`
  svg svgz html htm xhtml xht shtml mhtml mht hta xml xsl xslt js mjs cjs jse wasm
  exe dll scr pif cpl msi msp mst bat cmd ps1 ps1xml psm1 psd1 vbs vbe vb wsf wsh wsc sct lnk reg chm msc gadget
  sh bash zsh csh ksh fish elf so dylib appimage apk aab ipa deb rpm dmg jar war class swf
  php php3 php4 php5 php7 php8 phtml phar asp aspx jsp jspx cgi
  docm dotm xlsm xltm xlam pptm potm ppam ppsm sldm`),
);
/** Extensions that are refused only at the end of a name: inside they are ordinary words ("example.com.pdf"). */
const activeAtEnd = new Set(
  words('com app run command url inf scf ws pl py pyc pyw rb desktop pkg workflow xll jnlp'),
);

export type Verdict = { ok: true } | { ok: false; reason: string };

export const NOT_ALLOWED = 'type not allowed';

/** The type of a Content-Type value, without its parameters. */
export const essence = (contentType: string): string =>
  (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();

export const ruleOf = (contentType: string): Rule | undefined => {
  const type = essence(contentType);
  return Object.hasOwn(allowed, type) ? allowed[type] : undefined;
};

/** Whether an upload may be announced, by its declared type and its name (uploads#types). */
export function allowedType(contentType: string, filename: string): Verdict {
  if (!ruleOf(contentType)) return { ok: false, reason: NOT_ALLOWED };
  if (/[\p{Cc}/\\]/u.test(filename)) return { ok: false, reason: 'file name not allowed' };
  // Normalizes look-alike letters and dots, and removes marks that turn the direction, a stream name, and the endings
  // that Windows drops.
  const name =
    filename
      .normalize('NFKC')
      .replace(/\p{Cf}/gu, '')
      .split(':', 1)[0] ?? '';
  const extensions = name
    .toLowerCase()
    .replace(/[.\s]+$/, '')
    .split('.')
    .slice(1)
    .map((part) => part.trim());
  const last = extensions.at(-1);
  const blocked = extensions.some((e) => active.has(e)) || (last !== undefined && activeAtEnd.has(last));
  return blocked ? { ok: false, reason: NOT_ALLOWED } : { ok: true };
}

/** The path segment that the image-hosting provider wants (uploads#cloudinary): its `video` includes audio, `raw` is everything else. */
export function resourceOf(contentType: string): 'image' | 'video' | 'raw' {
  const kind = ruleOf(contentType)?.kind;
  return kind === 'image' ? 'image' : kind === 'video' || kind === 'audio' ? 'video' : 'raw';
}
