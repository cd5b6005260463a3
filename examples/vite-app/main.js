// A chat with one person in a page. Who signs in, and with which token, is up to your server: examples/token-server-express.
import { createClient } from '@parley/client';
import { indexedDbStorage } from '@parley/client/indexed-db';

const $ = (id) => document.getElementById(id);

async function chatToken() {
  const answer = await fetch('/chat-token');
  if (!answer.ok) throw new Error(`no token: ${answer.status}`);
  return answer.text();
}

async function open() {
  const client = createClient({
    url: import.meta.env.VITE_PARLEY_URL,
    token: chatToken,
    storage: indexedDbStorage(), // what is unsent survives a reload
  });
  client.on('state', ({ state }) => ($('state').textContent = state));
  client.on('error', (error) => console.error(error));
  await client.connect();

  const other = client.userId === 'bob' ? 'alice' : 'bob';
  const chat = await client.conversations.createDirect(other);
  const show = () => {
    const items = chat.messages.get().items.map(({ senderId, text, status }) => {
      const item = document.createElement('li');
      item.textContent = `${senderId}: ${text}`;
      item.dataset.status = status; // pending, sent or failed
      return item;
    });
    $('messages').replaceChildren(...items);
    chat.markRead();
  };
  chat.messages.subscribe(show);
  show();
  $('send').hidden = false;
  $('send').onsubmit = (event) => {
    event.preventDefault();
    chat.send(event.target.text.value); // shows at once, is sent in order and exactly once
    event.target.reset();
  };
}

$('sign-in').onsubmit = async (event) => {
  event.preventDefault();
  const body = JSON.stringify(Object.fromEntries(new FormData(event.target)));
  const answer = await fetch('/sign-in', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  if (!answer.ok) return ($('state').textContent = 'wrong name or password');
  $('sign-in').hidden = true;
  await open();
};
