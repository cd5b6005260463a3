import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allowedType, resourceOf } from '../src/features/uploads/content/allowed.ts';
import { detect } from '../src/features/uploads/content/detect.ts';
import { dimensions } from '../src/features/uploads/content/dimensions.ts';
import { verify } from '../src/features/uploads/content/verify.ts';

const bytes = (latin1: string) => Buffer.from(latin1, 'latin1');

/** Pictures of 7 by 5 pixels, written by libvips. */
const pictures: Record<string, [mime: string, file: Buffer]> = Object.fromEntries(
  Object.entries({
    png: 'iVBORw0KGgoAAAANSUhEUgAAAAcAAAAFCAIAAAAG+GGPAAAACXBIWXMAAAPoAAAD6AG1e1JrAAAAEUlEQVQImWMQMgnDRAw0EgUAjGoVVRkmZowAAAAASUVORK5CYII=',
    jpeg: '/9j/2wBDAP//////////////////////////////////////////////////////////////////////////////////////2wBDAf//////////////////////////////////////////////////////////////////////////////////////wAARCAAFAAcDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAL/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFAEBAAAAAAAAAAAAAAAAAAAAAf/EABQRAQAAAAAAAAAAAAAAAAAAAAD/2gAMAwEAAhEDEQA/AIAIf//Z',
    'jpeg progressive':
      '/9j/2wBDAP//////////////////////////////////////////////////////////////////////////////////////2wBDAf//////////////////////////////////////////////////////////////////////////////////////wgARCAAFAAcDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAL/xAAVAQEBAAAAAAAAAAAAAAAAAAAAAf/aAAwDAQACEAMQAAABkJ//xAAUEAEAAAAAAAAAAAAAAAAAAAAA/9oACAEBAAEFAn//xAAUEQEAAAAAAAAAAAAAAAAAAAAA/9oACAEDAQE/AX//2Q==',
    gif: 'R0lGODlhBwAFAIAAAExpcRI0ViH5BAUAAAAALAAAAAAHAAUAAAIFjI+puwUAOw==',
    'webp lossy': 'UklGRioAAABXRUJQVlA4IB4AAABwAQCdASoHAAUADMDOJYgCdAFAAAD+5s4q69XKAAA=',
    'webp lossless': 'UklGRh4AAABXRUJQVlA4TBEAAAAvBgABAAdQmkrUqv+BiOh/AAA=',
    'webp extended':
      'UklGRkgAAABXRUJQVlA4WAoAAAAQAAAABgAABAAAQUxQSAoAAAABB1DAiAhERP8DVlA4IBgAAAAwAQCdASoHAAUADMDOJaQAA3AA/uwdgAA=',
    avif: 'AAAAHGZ0eXBhdmlmAAAAAG1pZjFhdmlmbWlhZgAAANZtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAACJpbG9jAAAAAERAAAEAAQAAAAAA+gABAAAAAAAAAB8AAAAjaWluZgAAAAAAAQAAABVpbmZlAgAAAAABAABhdjAxAAAAAA5waXRtAAAAAAABAAAAVmlwcnAAAAA4aXBjbwAAAAxhdjFDgSACAAAAABRpc3BlAAAAAAAAAAcAAAAFAAAAEHBpeGkAAAAAAwgICAAAABZpcG1hAAAAAAAAAAEAAQOBAgMAAAAnbWRhdBIACgg4CLRpAQ0GkDIRH/JihOAAFgAAkDWOPHyHqGw=',
  }).map(([name, base64]) => [name, [`image/${name.split(' ')[0]}`, Buffer.from(base64, 'base64')]]),
);

const u32 = (value: number) => {
  const b = Buffer.alloc(4);
  b.writeUInt32BE(value);
  return b;
};
const box = (type: string, ...parts: Buffer[]) => {
  const body = Buffer.concat(parts);
  return Buffer.concat([u32(8 + body.length), bytes(type), body]);
};
const ispe = (width: number, height: number) => box('ispe', u32(0), u32(width), u32(height));

// A phone's photo: tiles of 512 pixels, the whole of 4032 by 3024, turned by a quarter.
const heic = Buffer.concat([
  box('ftyp', bytes('heic'), u32(0), bytes('mif1heic')),
  box(
    'meta',
    u32(0),
    box('iprp', box('ipco', ispe(512, 512), ispe(4032, 3024), box('irot', Buffer.from([3])))),
  ),
]);
const bmp = Buffer.alloc(30);
bmp.write('BM');
bmp.writeUInt32LE(40, 14);
bmp.writeInt32LE(7, 18);
bmp.writeInt32LE(-5, 22);

test('the format and size of each image are read from its first bytes', () => {
  for (const [name, [mime, file]] of Object.entries(pictures)) {
    assert.deepEqual(detect(file), { mime, kind: 'image' }, name);
    assert.deepEqual(dimensions(file), { width: 7, height: 5 }, name);
  }
  assert.deepEqual(detect(heic), { mime: 'image/heic', kind: 'image' });
  assert.deepEqual(dimensions(heic), { width: 3024, height: 4032 });
  assert.deepEqual(detect(bmp), { mime: 'image/bmp', kind: 'image' });
  assert.deepEqual(dimensions(bmp), { width: 7, height: 5 });
});

test('a JPEG turned by its EXIF orientation is measured as it is shown', () => {
  const jpeg = pictures['jpeg']?.[1] ?? Buffer.alloc(0);
  for (const [order, u16] of [
    ['II*\0\x08\0\0\0', (n: number) => String.fromCharCode(n, 0)],
    ['MM\0*\0\0\0\x08', (n: number) => String.fromCharCode(0, n)],
  ] as const) {
    const entry = (u16(0x12) === '\x12\0' ? '\x12\x01' : '\x01\x12') + u16(3) + '\0\0\0\0' + u16(6) + '\0\0';
    const app1 = bytes(`Exif\0\0${order}${u16(1)}${entry}`);
    const segment = Buffer.concat([bytes('\xff\xe1'), Buffer.from([0, app1.length + 2]), app1]);
    const file = Buffer.concat([jpeg.subarray(0, 2), segment, jpeg.subarray(2)]);
    assert.deepEqual(dimensions(file), { width: 5, height: 7 }, order);
  }
});

test('a head cut anywhere, or any byte of it changed, gives an answer and never throws', () => {
  for (const file of [...Object.values(pictures).map(([, f]) => f), heic, bmp]) {
    for (let end = 0; end <= file.length; end += 1) dimensions(file.subarray(0, end));
    for (let at = 0; at < file.length; at += 1) {
      for (const value of [0, 0x7f, 0xff]) {
        const changed = Buffer.from(file);
        changed[at] = value;
        dimensions(changed);
      }
    }
  }
  assert.equal(dimensions(new Uint8Array()), null);
  assert.equal(dimensions(bytes('\xff\xd8\xff').fill(0xff, 3)), null);
});

test('a size that no store can keep counts as no size, whether the file or the provider claims it', () => {
  const png = Buffer.from(pictures['png']![1]);
  png.writeUInt32BE(0xffff_ffff, 16);
  assert.equal(dimensions(png), null);
  const claims = (width: number) =>
    verify('image/png', 'a.png', 1_000_000, { size: 1_000_000, head: png, width, height: 5 });
  assert.deepEqual(claims(Infinity), { ok: true, mimeType: 'image/png' });
  assert.deepEqual(claims(2 ** 31), { ok: true, mimeType: 'image/png' });
  assert.deepEqual(claims(1.5), { ok: true, mimeType: 'image/png' });
  assert.deepEqual(claims(7), { ok: true, mimeType: 'image/png', width: 7, height: 5 });
});

test('video, audio and documents are told by their bytes', () => {
  const cases: [head: string, mime: string][] = [
    ['\0\0\0\x20ftypisom\0\0\0\0isommp41', 'video/mp4'],
    ['\0\0\0\x14ftypqt  \0\0\0\0qt  ', 'video/quicktime'],
    ['\0\0\0\x08wide\0\0\0\0mdat', 'video/quicktime'],
    ['\0\0\0\x18ftypM4A \0\0\0\0', 'audio/mp4'],
    ['\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf', 'image/avif'],
    ['\x1a\x45\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\x82\x84webm', 'video/webm'],
    ['ID3\x04\0', 'audio/mpeg'],
    ['\xff\xfb\x90\x64', 'audio/mpeg'],
    ['\xff\xf1\x50\x80', 'audio/aac'],
    ['OggS\0\x02', 'audio/ogg'],
    ['RIFF\0\0\0\0WAVEfmt ', 'audio/wav'],
    ['fLaC\0\0', 'audio/flac'],
    ['%PDF-1.7\n', 'application/pdf'],
    ['PK\x03\x04\x14\0[Content_Types].xml', 'application/zip'],
    ['\x1f\x8b\x08', 'application/gzip'],
    ['\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', 'application/x-cfb'],
  ];
  for (const [head, mime] of cases) assert.equal(detect(bytes(head))?.mime, mime, JSON.stringify(head));
  for (const plain of [
    '',
    'Hello',
    'BMW is a car maker',
    '<john@example.com> wrote',
    'a < b',
    '\xff\xfea\0b\0',
  ]) {
    assert.equal(detect(bytes(plain)), null, plain);
  }
});

const dangerous = {
  ELF: '\x7fELF\x02\x01\x01',
  'Windows program': 'MZ\x90\0\x03\0',
  'Mach-O': '\xcf\xfa\xed\xfe\x07\0\0\x01',
  'Java class': '\xca\xfe\xba\xbe\0\0\0\x34',
  wasm: '\0asm\x01\0\0\0',
  script: '#!/bin/sh\nrm -rf /',
  HTML: '<!DOCTYPE html><title>x</title>',
  'HTML after blanks': '\n\t  <html>',
  'HTML after a mark': '\xef\xbb\xbf<SCRIPT>alert(1)</SCRIPT>',
  'HTML in UTF-16': '\xff\xfe \0<\0h\0t\0m\0l\0>\0',
  'HTML comment': '<!-- --><script>',
  SVG: '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)">',
  'SVG in XML': '<?xml version="1.0"?><svg/>',
  PHP: '<?php system($_GET[0]);',
  JAR: `PK\x03\x04${'\0'.repeat(26)}META-INF/MANIFEST.MF`,
  'Windows shortcut': 'L\0\0\0\x01\x14\x02\0\0\0',
};

test('uploads#types: bytes of programs, scripts and pages are blocked under every declared type', () => {
  for (const [name, head] of Object.entries(dangerous)) {
    assert.equal(detect(bytes(head))?.kind, 'blocked', name);
    for (const [type, filename] of [
      ['image/png', 'cat.png'],
      ['application/pdf', 'bill.pdf'],
      ['text/plain', 'notes.txt'],
      ['application/octet-stream', 'data.bin'],
    ] as const) {
      const verdict = verify(type, filename, head.length, { size: head.length, head: bytes(head) });
      assert.deepEqual(verdict, { ok: false, reason: 'type not allowed' }, `${name} as ${type}`);
    }
  }
});

test('uploads#types: SVG, HTML, JavaScript and executables are refused by declared type', () => {
  for (const type of [
    'image/svg+xml',
    'text/html',
    'TEXT/HTML; charset=utf-8',
    'application/xhtml+xml',
    'text/xml',
    'application/javascript',
    'text/javascript',
    'application/x-msdownload',
    'application/x-executable',
    'application/x-sh',
    'application/wasm',
    'application/java-archive',
    'constructor',
    '',
  ]) {
    assert.equal(allowedType(type, 'cat.png').ok, false, type);
  }
});

test('uploads#types: and by file name, whatever the declared type', () => {
  for (const name of [
    'x.svg',
    'x.SVG',
    'x.html',
    'x.htm',
    'x.js',
    'x.mjs',
    'setup.exe',
    'bill.pdf.exe',
    'bill.exe.pdf',
    'photo.html.png',
    'setup.exe.',
    'setup.exe . .',
    'setup.exe ',
    'setup.exe\u00a0',
    'setup.e\u200bxe',
    'setup．exe',
    'setup.ｅｘｅ',
    'photo\u202egnp.exe',
    'setup.exe::$DATA',
    'a.png\0.exe',
    'dir/a.png',
    '..\\a.png',
    'run.sh',
    'app.jar',
    'macro.docm',
    'site.com',
    'x.php',
    '.svg',
  ]) {
    assert.equal(allowedType('image/png', name).ok, false, JSON.stringify(name));
  }
});

test('ordinary types and names pass', () => {
  for (const [type, name] of [
    ['image/png', 'cat.png'],
    ['IMAGE/JPEG', 'Urlaub 2024.JPG'],
    ['audio/webm;codecs=opus', 'voice'],
    ['application/pdf', 'www.example.com.pdf'],
    ['text/plain', 'read.me.txt'],
    ['application/octet-stream', 'data.bin'],
    ['image/png', 'スクリーンショット.png'],
    ['image/png', '2024-05-01 10.20.30.png'],
  ] as const) {
    assert.deepEqual(allowedType(type, name), { ok: true }, name);
  }
});

test('uploads#cloudinary: the resource segment is image, video (audio too) or raw', () => {
  assert.equal(resourceOf('image/png'), 'image');
  assert.equal(resourceOf('video/mp4'), 'video');
  assert.equal(resourceOf('audio/mpeg'), 'video');
  assert.equal(resourceOf('application/pdf'), 'raw');
  assert.equal(resourceOf('application/octet-stream'), 'raw');
});

test('completion: an image is verified, measured, and named what it is', () => {
  const png = pictures['png']?.[1] ?? Buffer.alloc(0);
  const stored = { size: png.length, head: png };
  const fine = { ok: true, mimeType: 'image/png', width: 7, height: 5 };
  assert.deepEqual(verify('image/png', 'a.png', png.length, stored), fine);
  assert.deepEqual(verify('image/jpeg', 'a.jpg', png.length, stored), fine);
  assert.equal(verify('image/png', 'a.png', png.length + 1, stored).ok, false);
  assert.deepEqual(verify('image/png', 'a.exe', png.length, stored), {
    ok: false,
    reason: 'type not allowed',
  });
});

test('completion: what is no image or video is refused as one', () => {
  const invalid = { ok: false, reason: 'not a valid image or video' };
  const as = (type: string, head: Uint8Array, size = head.length) =>
    verify(type, 'file', size, { size, head });
  const png = pictures['png']?.[1] ?? Buffer.alloc(0);
  assert.deepEqual(as('image/png', bytes('just text')), invalid);
  assert.deepEqual(as('image/png', bytes('%PDF-1.7')), invalid);
  assert.deepEqual(as('image/png', new Uint8Array()), invalid);
  assert.deepEqual(as('image/png', png.subarray(0, 12)), invalid, 'signature alone');
  assert.deepEqual(as('video/mp4', png), invalid);
  assert.deepEqual(as('image/png', bytes('\0\0\0\x20ftypisom')), invalid);
  assert.deepEqual(as('video/mp4', bytes('\0\0\0\x20ftypisom')), { ok: true, mimeType: 'video/mp4' });
  // The frame header of this JPEG lies behind the bytes that were read: a photo all the same.
  assert.deepEqual(as('image/jpeg', bytes('\xff\xd8\xff\xe1\xff\xffExif'), 90_000), {
    ok: true,
    mimeType: 'image/jpeg',
  });
});

test('completion: documents are what they say', () => {
  const as = (type: string, head: string) =>
    verify(type, 'file', head.length, { size: head.length, head: bytes(head) }).ok;
  const word = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
  assert.equal(as('application/pdf', '%PDF-1.7'), true);
  assert.equal(as('application/pdf', 'PK\x03\x04'), false);
  assert.equal(as(word, 'PK\x03\x04\x14\0'), true);
  assert.equal(as(word, '%PDF-1.7'), false);
  assert.equal(as('text/plain', 'hello'), true);
  assert.equal(as('text/plain', '%PDF-1.7'), false);
  assert.equal(as('audio/mpeg', 'ID3\x04'), true);
  assert.equal(as('audio/webm; codecs=opus', '\x1a\x45\xdf\xa3....webm'), true);
  assert.equal(as('audio/mpeg', '%PDF-1.7'), false);
  assert.equal(as('application/octet-stream', '%PDF-1.7'), true);
});
