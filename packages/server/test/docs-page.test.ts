import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closeCodes, clientFrames, errorCodes, eventNames, operationList } from '@parley/protocol';
import { docsRoutes } from '../src/transport/rest/docs-page/index.ts';
import { html, prose } from '../src/transport/rest/docs-page/html.ts';

const routes = new Map(docsRoutes().map((route) => [route.path, route]));
const text = async (path: string): Promise<string> => String(await routes.get(path)?.body());

test('the reference shows every operation, frame, event, error and close code', async () => {
  const page = await text('/docs');
  for (const op of operationList) {
    assert.ok(page.includes(`id="op-${op.name}"`), op.name);
    assert.ok(page.includes(`<code>${op.path}</code>`), op.path);
  }
  for (const type of Object.keys(clientFrames)) assert.ok(page.includes(`id="frame-client.${type}"`), type);
  for (const name of eventNames) assert.ok(page.includes(`id="frame-event.${name}"`), name);
  for (const code of errorCodes) assert.ok(page.includes(`<tr id="error-${code}">`), code);
  for (const code of Object.keys(closeCodes)) assert.ok(page.includes(`<code>${code}</code>`), code);
});

test('every link inside the page leads somewhere, and no id is used twice', async () => {
  const page = await text('/docs');
  const ids = [...page.matchAll(/ id="([^"]*)"/g)].map((match) => match[1]);
  assert.equal(new Set(ids).size, ids.length);
  const links = [...page.matchAll(/ href="([^"]*)"/g)].map((match) => match[1] ?? '');
  assert.ok(links.length > operationList.length);
  for (const link of links) {
    if (link.startsWith('#')) assert.ok(ids.includes(link.slice(1)), link);
    else assert.ok(link === 'data:,' || routes.has(link), `${link} is ours`);
  }
});

test('nothing comes from outside: our script, our stylesheet, and a policy that says so', async () => {
  const page = await text('/docs');
  assert.deepEqual(page.match(/<script[^>]*>/g), ['<script type="module" src="/docs/script.js">']);
  assert.doesNotMatch(
    page.replace(/<script.*?<\/script>/, ''),
    /<img|<iframe|<style|\sstyle=|\son\w+=|\ssrc=/i,
  );
  assert.doesNotMatch(await text('/docs/script.js'), /https?:|innerHTML|import /);
  assert.doesNotMatch(await text('/docs/style.css'), /url\(|@import/);
  for (const route of routes.values()) {
    const policy = route.headers['content-security-policy'] ?? '';
    assert.ok(
      policy.startsWith(
        "default-src 'none'; style-src 'self'; img-src data:; script-src 'self'; connect-src 'self';",
      ),
      policy,
    );
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
    assert.equal(route.headers['x-content-type-options'], 'nosniff');
  }
});

test('guides, descriptions, SDK samples and what a call is tried with are in the page', async () => {
  const page = await text('/docs');
  for (const title of ['User tokens', 'Rate limits', 'Upload types', 'Plans'])
    assert.ok(page.includes(`<h2>${title}</h2>`), title);
  assert.ok(page.includes('hash_hmac'), 'token code in other languages');
  assert.match(page, /data-tab="Node SDK"[\s\S]*?parley\.users\.upsert\(&#39;alice&#39;, \{/);
  assert.match(
    page,
    /id="op-messages.send"\s+data-method="POST"\s+data-path="\/v1\/conversations\/\{conversationId\}\/messages"/,
  );
  assert.doesNotMatch(page, /id="op-session.create"\s+data-method/);
});

test('/openapi.json and /asyncapi.json are the generated documents', async () => {
  assert.equal((JSON.parse(await text('/openapi.json')) as { openapi: string }).openapi, '3.1.0');
  assert.equal((JSON.parse(await text('/asyncapi.json')) as { asyncapi: string }).asyncapi, '3.0.0');
  assert.equal(routes.get('/openapi.json')?.contentType, 'application/json');
  assert.equal(routes.get('/docs')?.contentType, 'text/html; charset=utf-8');
});

test('what enters a template is escaped', () => {
  assert.equal(
    html`<a title="${'"><b>\'&'}">${['<i>']}</a>`.text,
    '<a title="&quot;&gt;&lt;b&gt;&#39;&amp;">&lt;i&gt;</a>',
  );
  assert.equal(prose('`<x>` & y').text, '<code>&lt;x&gt;</code> &amp; y');
});
