import type { Resource } from '../../../platform/storage/port.ts';
import type { Kind } from './detect.ts';

const words = (list: string) => list.trim().split(/\s+/);

interface Rule {
  kind: Exclude<Kind, 'blocked'> | 'any';
  declared: string[];
  /** The kinds that the bytes may turn out to be; null stands for no known format. */
  found: (string | null)[];
}

/** uploads#types: the MIME allowlist. Declared types that are not here are refused. */
const rules: Rule[] = [
  {
    kind: 'image',
    declared: words(
      `image/png image/jpeg image/jpg image/gif image/webp image/avif image/heic image/heif image/bmp`,
    ),
    found: words(`image/png image/jpeg image/gif image/webp image/avif image/heic image/bmp`),
  },
  {
    kind: 'video',
    declared: words('video/mp4 video/quicktime video/webm video/3gpp'),
    found: words('video/mp4 video/quicktime video/webm video/3gpp'),
  },
  {
    kind: 'audio',
    declared: words(`
      audio/mpeg audio/mp3 audio/ogg audio/wav audio/wave audio/x-wav audio/mp4 audio/m4a audio/x-m4a
      audio/flac audio/x-flac audio/aac audio/webm`),
    // Recorders write audio into video containers, and MP3 files begin with many different bytes.
    found: [
      ...words(
        `audio/mpeg audio/ogg audio/wav audio/mp4 audio/flac audio/aac video/mp4 video/webm video/3gpp`,
      ),
      null,
    ],
  },
  { kind: 'document', declared: ['application/pdf'], found: ['application/pdf'] },
  { kind: 'document', declared: ['application/rtf', 'text/rtf'], found: ['application/rtf'] },
  {
    kind: 'document',
    declared: words('text/plain text/csv text/markdown text/calendar text/vcard application/json'),
    found: [null],
  },
  {
    kind: 'document',
    declared: words('application/zip application/x-zip-compressed application/epub+zip'),
    found: ['application/zip'],
  },
  {
    kind: 'document',
    declared: ['application/gzip', 'application/x-gzip'],
    found: ['application/gzip'],
  },
  {
    kind: 'document',
    declared: words(`
      application/msword application/vnd.ms-excel application/vnd.ms-powerpoint
      application/vnd.openxmlformats-officedocument.wordprocessingml.document
      application/vnd.openxmlformats-officedocument.spreadsheetml.sheet
      application/vnd.openxmlformats-officedocument.presentationml.presentation
      application/vnd.oasis.opendocument.text application/vnd.oasis.opendocument.spreadsheet
      application/vnd.oasis.opendocument.presentation`),
    // An encrypted office file is a CFB container, whatever its version.
    found: ['application/zip', 'application/x-cfb'],
  },
  // Browsers declare this for a file they do not know; its name and bytes decide.
  { kind: 'any', declared: ['application/octet-stream'], found: [] },
];
const allowed = new Map(rules.flatMap((rule) => rule.declared.map((type) => [type, rule] as const)));

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

export const ruleOf = (contentType: string): Rule | undefined => allowed.get(essence(contentType));

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
export function resourceOf(contentType: string): Resource {
  const kind = ruleOf(contentType)?.kind;
  return kind === 'image' ? 'image' : kind === 'video' || kind === 'audio' ? 'video' : 'raw';
}
