import { useEffect, useId, useRef, useState } from 'react';
import type { SyntheticEvent } from 'react';
import { ParleyError } from '@parley/client';
import type { ReportReason, ReportTarget } from '@parley/client';
import { useParley } from '../hooks/context.ts';

export interface ReportDialogProps {
  target: ReportTarget;
  onClose: () => void;
}

const reasons: readonly ReportReason[] = [
  'spam',
  'abuse',
  'violence',
  'sexual',
  'self_harm',
  'illegal',
  'other',
];
const mostCharacters = 1_000;

/** The browser keeps the focus inside of it; arrows choose the reason. */
export default function ReportForm({ target, onClose }: ReportDialogProps) {
  const { client, strings, announcer } = useParley();
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState<ReportReason | null>(null);
  const [note, setNote] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const title = useId();
  const name = useId();
  useEffect(() => {
    const opener = document.activeElement as HTMLElement | null;
    const element = dialog.current!;
    element.showModal();
    return () => {
      element.close();
      // The button is gone by now, the row that it stood in is not.
      (opener?.isConnected ? opener : null)?.focus();
    };
  }, []);

  const report = async (event: SyntheticEvent): Promise<void> => {
    event.preventDefault();
    if (reason === null || busy) return;
    setBusy(true);
    setProblem(null);
    try {
      await client.report(target, reason, note.trim());
      announcer.say(strings.reported);
      onClose();
    } catch (error) {
      const often = error instanceof ParleyError && error.code === 'rate_limited';
      setProblem(often ? strings.reportedTooOften : strings.notReported);
      setBusy(false);
    }
  };

  return (
    <dialog
      ref={dialog}
      className="parley-report"
      aria-labelledby={title}
      // Keys belong to the dialog: the list behind it must not move.
      onKeyDown={(event) => event.stopPropagation()}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === event.currentTarget) onClose();
      }}
    >
      <form onSubmit={(event) => void report(event)}>
        <h2 id={title}>{strings.reportTitle}</h2>
        <fieldset>
          <legend>{strings.reportWhy}</legend>
          {reasons.map((one) => (
            <label key={one}>
              <input
                type="radio"
                name={name}
                value={one}
                checked={reason === one}
                onChange={() => setReason(one)}
              />
              {strings.reportReasons[one]}
            </label>
          ))}
        </fieldset>
        <label className="parley-report-note">
          {strings.reportNote}
          <textarea
            dir="auto"
            rows={3}
            maxLength={mostCharacters}
            value={note}
            onChange={(event) => setNote(event.target.value)}
          />
        </label>
        <p>{strings.reportHint}</p>
        {problem === null ? null : <p role="alert">{problem}</p>}
        <div>
          <button type="button" onClick={onClose}>
            {strings.cancel}
          </button>
          <button type="submit" disabled={reason === null || busy}>
            {strings.report}
          </button>
        </div>
      </form>
    </dialog>
  );
}
