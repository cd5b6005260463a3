// A page with the kit as a server renders it: the chat is there, and nothing is asked for.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createElement, version } from 'react';
import { renderToString } from 'react-dom/server';
import { createClient } from '@parley/client';
import { Chat, ParleyProvider } from '@parley/react';
import { CallStage } from '@parley/react/calls';
import { createWire, WirePanel } from '@parley/react/devtools';
import { EmojiPicker } from '@parley/react/emoji';

const client = createClient({ url: 'http://127.0.0.1:9', token: () => Promise.reject(new Error('asked')) });
const html = renderToString(createElement(ParleyProvider, { client, connect: true }, createElement(Chat)));
const panel = createElement(WirePanel, { wire: createWire() });
const devtools = renderToString(createElement(ParleyProvider, { client }, panel));
const css = (name) => readFileSync(fileURLToPath(import.meta.resolve(`@parley/react/${name}`)), 'utf8');
console.log(
  JSON.stringify({
    html,
    version: version.split('.')[0],
    calls: CallStage !== undefined,
    devtools: devtools.includes('class="parley-wire"') && css('devtools.css').includes('.parley-wire'),
    emoji: EmojiPicker !== undefined,
    styles: css('styles.css').includes('tokens.css'),
    tokens: css('tokens.css').includes('--parley-canvas'),
  }),
);
