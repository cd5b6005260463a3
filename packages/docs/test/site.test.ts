import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import {
  clientFrames,
  closeCodes,
  errorCodes,
  eventNames,
  operationList,
  webhookEventNames,
} from '@parley/protocol';
import { prepareSite, writeSite } from '../src/build/site.ts';
import type { Prepared, Site } from '../src/build/site.ts';
import { html, prose } from '../src/build/html.ts';
import { docsApp } from '../src/pages.ts';

/** The site as files: what is on it, where its links lead, and how large it is. */

const most = 100_000;
let prepared: Prepared;
let site: Site;
let pages: Map<string, string>;
before(async () => {
  prepared = await prepareSite();
  site = writeSite(prepared, { base: '/docs' });
  pages = new Map(
    [...site].filter(([name]) => name.endsWith('.html')).map(([name, body]) => [name, body.toString()]),
  );
});
const page = (path: string): string => pages.get(`${path}/index.html`) ?? '';
const idsOf = (text: string): string[] => [...text.matchAll(/ id="([^"]*)"/g)].map((match) => match[1]!);

describe('the documentation', () => {
  it('has every operation, frame, event, webhook, error and close code', () => {
    const text = [...pages]
      .filter(([name]) => !name.startsWith('reference/socket'))
      .map(([, one]) => one)
      .join('\n');
    for (const op of operationList) {
      assert.equal(text.split(` id="${op.name}"`).length, 2, `${op.name} stands on one page`);
      assert.ok(text.includes(html`${op.text}`.text.split('`')[0]!), `the text of ${op.name}`);
    }
    const socket = [...idsOf(page('reference/socket')), ...idsOf(page('reference/socket-events'))];
    for (const type of Object.keys(clientFrames)) assert.ok(socket.includes(type), type);
    for (const name of eventNames) assert.ok(socket.includes(`event.${name}`), name);
    const hooks = idsOf(page('reference/webhook-events'));
    for (const name of webhookEventNames) assert.ok(hooks.includes(name), name);
    const errors = page('reference/errors');
    for (const code of errorCodes) assert.ok(idsOf(errors).includes(code), code);
    for (const code of Object.keys(closeCodes)) assert.ok(errors.includes(`<code>${code}</code>`), code);
    for (const [path, name] of [
      ['sdk/client', 'main.createClient'],
      ['sdk/react', 'main.Chat'],
      ['sdk/server', 'main.verifyWebhook'],
    ])
      assert.ok(idsOf(page(path!)).includes(name!), name);
  });

  it('leads nowhere that is not there, and uses no id twice', () => {
    for (const [name, text] of pages) {
      const ids = idsOf(text);
      assert.deepEqual(
        ids.filter((id, i) => ids.indexOf(id) !== i),
        [],
        name,
      );
      for (const [, link = ''] of text.matchAll(/<a [^>]*?href="([^"]*)"/g)) {
        if (/^(https?|mailto):/.test(link)) continue;
        const [path = '', anchor] = link.split('#');
        const target =
          path === '' ? text : pages.get(`${path.replace(/^\/docs\/?/, '')}/index.html`.replace(/^\//, ''));
        assert.ok(target !== undefined && /^(#|\/docs)/.test(link), `${name}: ${link}`);
        if (anchor !== undefined)
          assert.ok(idsOf(target).includes(decodeURIComponent(anchor)), `${name}: ${link} has no such place`);
      }
    }
  });

  it('loads nothing from elsewhere, and at most 100 kB a page', () => {
    const css = [...site].filter(([name]) => name.endsWith('.css')).map(([, body]) => body.toString());
    assert.ok(css.length > 0);
    for (const text of css) assert.doesNotMatch(text, /url\((?!["']?(\.\/|data:))|@import/);
    const gzipped = (name: string): number =>
      gzipSync(site.get(name) ?? assert.fail(name), { level: 9 }).length;
    // The search comes when somebody searches; the other scripts and the fonts may come with the page.
    const later = [...site.keys()].filter((name) => /^assets\/search-/.test(name));
    assert.equal(later.length, 2);
    const assets = [...site.keys()].filter((name) => {
      const isFont = /^assets\/geist(-mono)?-latin-wght/.test(name);
      return name.startsWith('assets/') && !later.includes(name) && (isFont || !name.endsWith('.woff2'));
    });
    const shared = assets.reduce((sum, name) => sum + gzipped(name), 0);
    for (const [name, text] of pages) {
      for (const [tag, address = ''] of text.matchAll(
        /<(?:script|link|img|iframe)[^>]*?(?:src|href)="([^"]*)"/g,
      ))
        assert.match(address, /^(\/docs\/assets\/|data:image)/, tag);
      assert.doesNotMatch(text, /<[^>]+\s(style|on\w+)=/);
      const size = shared + gzipped(name);
      assert.ok(size <= most, `${name}: ${size} bytes`);
    }
  });

  it('for another host has that host’s paths', () => {
    const elsewhere = writeSite(prepared, { base: '', elsewhere: true });
    const text = elsewhere.get('guides/webhooks/index.html')!.toString();
    assert.match(text, /href="\/guides\/tokens"/);
    assert.match(text, /href="\/"/);
    assert.doesNotMatch(text, /(href|src|data-index)="\/docs/);
    assert.deepEqual(
      [...elsewhere.keys()].filter((name) => name.endsWith('.html')),
      [...pages.keys()],
    );
  });

  it('is served with its policy, compressed where that is understood; what is not there is 404', async () => {
    for (const asked of ['/docs', '/docs/', '/docs/guides/tokens', '/docs/guides/tokens/']) {
      const { status, headers, body } = await docsApp.answer(asked, 'gzip, br');
      assert.equal(status, 200, asked);
      assert.equal(headers['content-encoding'], 'br');
      assert.ok(body.length < 40_000);
      assert.match(headers['content-security-policy']!, /^default-src 'none'; .*script-src 'self' 'sha256-/);
      assert.doesNotMatch(headers['content-security-policy']!, /unsafe|\*|https?:/);
      const [, inline = ''] = /<script>([^<]*)<\/script>/.exec(page('guides/tokens')) ?? [];
      const hash = createHash('sha256').update(inline).digest('base64');
      assert.ok(
        headers['content-security-policy']!.includes(`'sha256-${hash}'`),
        'the script in the page may run',
      );
    }
    const missing = await docsApp.answer('/docs/../../etc/passwd', '');
    assert.equal(missing.status, 404);
    assert.match(String(missing.body), /Page not found/);
  });
});

it('what enters a template is escaped', () => {
  assert.equal(
    html`<a title="${'"><b>\'&'}">${['<i>']}</a>`.text,
    '<a title="&quot;&gt;&lt;b&gt;&#39;&amp;">&lt;i&gt;</a>',
  );
  assert.equal(prose('`<x>` & y').text, '<code>&lt;x&gt;</code> &amp; y');
});
