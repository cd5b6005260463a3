import { useEffect, useRef, useState } from 'react';
import type { KeyboardEvent } from 'react';
import type { NewPoll } from '@parley/client';
import { useStrings } from '../hooks/context.ts';

const most = { question: 300, option: 100, options: 10 };

/** The fields of a new poll. They are inside the composer's form, so this is not a form itself. */
export default function PollForm({
  onAsk,
  onClose,
}: {
  onAsk: (poll: NewPoll) => void;
  onClose: () => void;
}) {
  const strings = useStrings();
  const first = useRef<HTMLInputElement>(null);
  const [question, setQuestion] = useState('');
  const [texts, setTexts] = useState(['', '']);
  const [multiple, setMultiple] = useState(false);
  const [anonymous, setAnonymous] = useState(false);
  useEffect(() => first.current?.focus(), []);
  const options = texts.map((text) => text.trim()).filter((text) => text !== '');
  const ready = question.trim() !== '' && options.length >= 2;
  const ask = (): void => {
    if (ready)
      onAsk({ question: question.trim(), options: options.map((text) => ({ text })), multiple, anonymous });
  };
  /** There is always an empty field for one more option. */
  const write = (at: number, text: string): void => {
    const next = texts.map((one, i) => (i === at ? text : one));
    if (next.at(-1) !== '' && next.length < most.options) next.push('');
    setTexts(next);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') onClose();
    else if (event.key === 'Enter' && event.target instanceof HTMLInputElement) ask();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div className="parley-poll-form" role="dialog" aria-label={strings.newPoll} onKeyDown={onKeyDown}>
      <input
        ref={first}
        type="text"
        dir="auto"
        value={question}
        maxLength={most.question}
        placeholder={strings.pollQuestion}
        aria-label={strings.pollQuestion}
        onChange={(event) => setQuestion(event.target.value)}
      />
      {texts.map((text, i) => (
        <input
          key={i}
          type="text"
          dir="auto"
          value={text}
          maxLength={most.option}
          placeholder={strings.pollOptionAt(i + 1)}
          aria-label={strings.pollOptionAt(i + 1)}
          onChange={(event) => write(i, event.target.value)}
        />
      ))}
      <label>
        <input type="checkbox" checked={multiple} onChange={() => setMultiple(!multiple)} />
        {strings.pollMultiple}
      </label>
      <label>
        <input type="checkbox" checked={anonymous} onChange={() => setAnonymous(!anonymous)} />
        {strings.pollAnonymous}
      </label>
      <div>
        <button type="button" onClick={onClose}>
          {strings.cancel}
        </button>
        <button type="button" disabled={!ready} onClick={ask}>
          {strings.askPoll}
        </button>
      </div>
    </div>
  );
}
