// A whole chat in a page, with the React kit. Who signs in, and with which token, is up to your server: examples/token-server-express.
import { StrictMode, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { createClient } from '@parley/client';
import { indexedDbStorage } from '@parley/client/indexed-db';
import { Chat, ParleyProvider } from '@parley/react';
import '@parley/react/styles.css';

async function chatToken() {
  const answer = await fetch('/chat-token');
  if (!answer.ok) throw new Error(`no token: ${answer.status}`);
  return answer.text();
}

const client = createClient({
  url: import.meta.env.VITE_PARLEY_URL,
  token: chatToken,
  storage: indexedDbStorage(), // what is unsent survives a reload
});

function SignIn({ onDone }) {
  const [problem, setProblem] = useState('');
  const submit = async (event) => {
    event.preventDefault();
    const answer = await fetch('/sign-in', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(Object.fromEntries(new FormData(event.target))),
    });
    if (answer.ok) onDone();
    else setProblem('Wrong name or password.');
  };
  return (
    <form onSubmit={submit}>
      <input name="user" placeholder="alice" required />
      <input name="password" type="password" placeholder="wonderland" required />
      <button>Sign in</button>
      <p role="alert">{problem}</p>
    </form>
  );
}

/** Opens a conversation with one person as soon as there is a connection; others appear in the list. */
function Talk() {
  const [chosen, choose] = useState(null);
  useEffect(
    () =>
      client.on('state', async ({ state }) => {
        if (state !== 'connected' || chosen !== null) return;
        const conversation = await client.conversations.createDirect(
          client.userId === 'bob' ? 'alice' : 'bob',
        );
        choose(conversation.id);
      }),
    [chosen],
  );
  return <Chat selectedId={chosen} onSelect={choose} style={{ height: '100vh' }} />;
}

function App() {
  const [signedIn, setSignedIn] = useState(false);
  if (!signedIn) return <SignIn onDone={() => setSignedIn(true)} />;
  return (
    <ParleyProvider client={client} connect>
      <Talk />
    </ParleyProvider>
  );
}

createRoot(document.getElementById('root')).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
