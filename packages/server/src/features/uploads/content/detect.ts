export type Kind = 'image' | 'video' | 'audio' | 'document' | 'blocked';

export interface Detected {
  mime: string;
  kind: Kind;
}

const latin1 = (bytes: Uint8Array, start: number, end: number) =>
  Buffer.from(bytes.subarray(start, end)).toString('latin1');

/**
 * Formats recognised by their first bytes, written as latin-1. If one is the beginning of another, the longer stands
 * first.
 */
const signatures: [prefix: string, mime: string, kind: Kind][] = [
  ['\x89PNG\r\n\x1a\n', 'image/png', 'image'],
  ['\xff\xd8\xff', 'image/jpeg', 'image'],
  ['GIF87a', 'image/gif', 'image'],
  ['GIF89a', 'image/gif', 'image'],
  ['ID3', 'audio/mpeg', 'audio'],
  ['OggS', 'audio/ogg', 'audio'],
  ['fLaC', 'audio/flac', 'audio'],
  ['%PDF-', 'application/pdf', 'document'],
  ['{\\rtf', 'application/rtf', 'document'],
  ['\x1f\x8b', 'application/gzip', 'document'],
  ['\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', 'application/x-cfb', 'document'],
  ['\x7fELF', 'application/x-elf', 'blocked'],
  ['MZ', 'application/vnd.microsoft.portable-executable', 'blocked'],
  ['\xfe\xed\xfa\xce', 'application/x-mach-binary', 'blocked'],
  ['\xfe\xed\xfa\xcf', 'application/x-mach-binary', 'blocked'],
  ['\xce\xfa\xed\xfe', 'application/x-mach-binary', 'blocked'],
  ['\xcf\xfa\xed\xfe', 'application/x-mach-binary', 'blocked'],
  // These bytes begin a Java class, or a Mach-O for several processors.
  ['\xca\xfe\xba\xbe', 'application/java-vm', 'blocked'],
  ['\0asm', 'application/wasm', 'blocked'],
  ['dex\n', 'application/vnd.android.dex', 'blocked'],
  ['L\0\0\0\x01\x14\x02\0', 'application/x-ms-shortcut', 'blocked'],
  ['!<arch>\n', 'application/x-archive', 'blocked'],
  ['\xed\xab\xee\xdb', 'application/x-rpm', 'blocked'],
  ['ITSF', 'application/vnd.ms-htmlhelp', 'blocked'],
  ['FWS', 'application/x-shockwave-flash', 'blocked'],
  ['CWS', 'application/x-shockwave-flash', 'blocked'],
  ['ZWS', 'application/x-shockwave-flash', 'blocked'],
];

/** What browsers take for a page whatever its name is (WHATWG MIME Sniffing 7.1), and SVG, XML and PHP. */
const markup =
  /^(<!doctype|<html|<head|<body|<script|<iframe|<h1|<div|<font|<table|<a|<style|<title|<b|<br|<p|<svg|<math|<link|<meta|<base|<img|<object|<embed|<form)[\s/>]|^<!--|^<\?(xml|php|=)/;

/** The format that the first bytes of an object show; null if none is recognised, as for plain text. */
export function detect(head: Uint8Array): Detected | null {
  const start = latin1(head, 0, 64);
  const found = signatures.find(([prefix]) => start.startsWith(prefix));
  if (found) return { mime: found[1], kind: found[2] };
  return detectContainer(head, start) ?? detectMpeg(head) ?? detectText(head);
}

function detectContainer(head: Uint8Array, start: string): Detected | null {
  if (start.startsWith('RIFF')) {
    if (start.startsWith('WEBP', 8)) return { mime: 'image/webp', kind: 'image' };
    return start.startsWith('WAVE', 8) ? { mime: 'audio/wav', kind: 'audio' } : null;
  }
  // The size of the header that follows distinguishes a bitmap from a text that begins with BM.
  if (start.startsWith('BM') && [12, 40, 52, 56, 64, 108, 124].includes(head[14] ?? 0)) {
    return { mime: 'image/bmp', kind: 'image' };
  }
  if (start.startsWith('\x1a\x45\xdf\xa3')) {
    return { mime: start.includes('webm') ? 'video/webm' : 'video/x-matroska', kind: 'video' };
  }
  if (start.startsWith('ftyp', 4)) return detectBrand(start);
  if (/^....(moov|mdat|wide|pnot)/s.test(start)) return { mime: 'video/quicktime', kind: 'video' };
  return /^PK(\x03\x04|\x05\x06|\x07\x08)/.test(start) ? detectZip(head) : null;
}

/** Reads the brands of an ISO base media file: the major brand, then the compatible ones (from byte 16). */
function detectBrand(start: string): Detected {
  const major = start.slice(8, 12);
  const brands = start.slice(8, Math.max(12, Math.min(64, (start.charCodeAt(2) << 8) | start.charCodeAt(3))));
  if (/^(avif|avis)/.test(major) || (/^(mif1|msf1)/.test(major) && /avif/.test(brands)))
    return { mime: 'image/avif', kind: 'image' };
  if (/^(heic|heix|hevc|hevx|heim|heis|mif1|msf1)/.test(major)) return { mime: 'image/heic', kind: 'image' };
  if (/^(M4A|M4B)/.test(major)) return { mime: 'audio/mp4', kind: 'audio' };
  if (major === 'qt  ') return { mime: 'video/quicktime', kind: 'video' };
  return { mime: major.startsWith('3g') ? 'video/3gpp' : 'video/mp4', kind: 'video' };
}

/** Zips: office files are zips too, and so are programs for Java and Android, which are recognised by their first entries. */
function detectZip(head: Uint8Array): Detected {
  const names = latin1(head, 0, head.length);
  const program =
    /PK\x03\x04.{26}(META-INF\/MANIFEST\.MF|AndroidManifest\.xml|classes\.dex|[\w/$]+\.class)/s.test(names);
  return program
    ? { mime: 'application/java-archive', kind: 'blocked' }
    : { mime: 'application/zip', kind: 'document' };
}

/**
 * Frames of raw MPEG audio: eleven set bits, then version and layer; layer 0 is AAC's ADTS. Layer I is not accepted,
 * because UTF-16 text begins with the same bytes.
 */
function detectMpeg(head: Uint8Array): Detected | null {
  const [first = 0, second = 0, third = 0] = head;
  if (first !== 0xff || (second & 0xe0) !== 0xe0) return null;
  if ((second & 0xf6) === 0xf0) return { mime: 'audio/aac', kind: 'audio' };
  const layer = second & 0x06;
  const valid =
    (second & 0x18) !== 0x08 &&
    (layer === 2 || layer === 4) &&
    (third & 0xf0) !== 0xf0 &&
    (third & 0x0c) !== 0x0c;
  return valid ? { mime: 'audio/mpeg', kind: 'audio' } : null;
}

function detectText(head: Uint8Array): Detected | null {
  const utf16 =
    head[0] === 0xff && head[1] === 0xfe
      ? 'utf-16le'
      : head[0] === 0xfe && head[1] === 0xff
        ? 'utf-16be'
        : null;
  const decoded = new TextDecoder(utf16 ?? 'utf-8').decode(head.subarray(0, 2048));
  if (decoded.startsWith('#!')) return { mime: 'text/x-shellscript', kind: 'blocked' };
  return markup.test(decoded.trimStart().toLowerCase()) ? { mime: 'text/html', kind: 'blocked' } : null;
}
