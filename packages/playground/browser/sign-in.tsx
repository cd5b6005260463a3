import { useState } from 'react';
import type { SyntheticEvent } from 'react';
import { Avatar } from '@parley/react';
import { Wordmark } from './icons.tsx';
import { samples, userIdOf } from './people.ts';

/** The choice of a user: a sample person or any name. Development environments accept it. */
export function SignIn({ onChoose }: { onChoose: (userId: string) => void }) {
  const [name, setName] = useState('');
  const [problem, setProblem] = useState('');
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const id = userIdOf(name);
    if (id === null) setProblem('Use letters, digits, and _ - @ . :');
    else onChoose(id);
  };
  return (
    <main className="demo-sign-in">
      <Wordmark height={34} />
      <h1>Who are you today?</h1>
      <p>
        Chat, files and calls, on this service, as your users would have them. Be one of these people, or two
        of them side by side.
      </p>
      <ul aria-label="Sample people">
        {samples.map((person) => (
          <li key={person.id}>
            <button type="button" onClick={() => onChoose(person.id)}>
              <Avatar id={person.id} name={person.name} size={40} />
              <b>{person.name}</b>
              <span>{person.about}</span>
            </button>
          </li>
        ))}
      </ul>
      <form onSubmit={submit}>
        <label htmlFor="name">Or somebody else</label>
        <div>
          <input
            id="name"
            value={name}
            maxLength={40}
            autoComplete="off"
            placeholder="Your name"
            required
            aria-invalid={problem !== ''}
            aria-describedby="name-problem"
            onChange={(event) => setName(event.target.value)}
          />
          <button type="submit" className="demo-button" data-kind="primary">
            Start
          </button>
        </div>
        <p id="name-problem" role="alert">
          {problem}
        </p>
      </form>
      <footer>
        <a href="/docs">Documentation</a>
        <a href="/dashboard">Dashboard</a>
        <a href="/connection-test">Can I make calls from here?</a>
      </footer>
    </main>
  );
}
