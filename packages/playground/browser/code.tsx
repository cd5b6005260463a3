import { useEffect, useRef, useState } from 'react';
import { IconButton } from './controls.tsx';
import { useSession } from './message.tsx';
import { snippets } from './snippets.ts';
import type { Snippet } from './snippets.ts';
import { useValue } from './store.ts';

/** The code of every action of the demo; the last action is open. */
export function Code() {
  const { network } = useSession();
  const action = useValue(network.action);
  return (
    <section className="demo-code" aria-label="Code">
      <p>What you do opens the code that does it.</p>
      <ul>
        {snippets.map((snippet) => (
          <Entry key={snippet.id} snippet={snippet} done={action?.id === snippet.id ? action.no : null} />
        ))}
      </ul>
    </section>
  );
}

function Entry({ snippet, done }: { snippet: Snippet; done: number | null }) {
  const [chosen, setChosen] = useState(false);
  const [copied, setCopied] = useState(false);
  const row = useRef<HTMLLIElement>(null);
  const now = done !== null;
  useEffect(() => {
    if (now) row.current?.scrollIntoView({ block: 'nearest' });
  }, [now]);
  const copy = (): void =>
    void navigator.clipboard.writeText(snippet.code).then(
      () => setCopied(true),
      () => undefined, // A page without the focus may not copy.
    );
  return (
    <li ref={row} data-now={now || undefined}>
      <button type="button" aria-expanded={now || chosen} onClick={() => setChosen(!chosen)}>
        {snippet.title}
        {now ? <small>just now</small> : null}
      </button>
      {now || chosen ? (
        <div>
          <pre tabIndex={0}>
            <code>{snippet.code}</code>
          </pre>
          <IconButton icon={copied ? 'check' : 'copy'} label={copied ? 'Copied' : 'Copy'} onPress={copy} />
        </div>
      ) : null}
    </li>
  );
}
