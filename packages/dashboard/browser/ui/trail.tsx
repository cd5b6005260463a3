import CheckIcon from 'lucide-react/icons/check';
import CrossIcon from 'lucide-react/icons/x';
import DashIcon from 'lucide-react/icons/minus';
import type { ReactNode } from 'react';
import { Icon } from './icon.tsx';

/** What became of something: a full point happened, a red one failed, a hollow one has not happened. */

export type PointState = 'done' | 'failed' | 'open';

const icons = { done: CheckIcon, failed: CrossIcon, open: DashIcon };
const words = { done: 'yes', failed: 'no', open: 'not yet' };

export interface TrailStep {
  name: string;
  state: PointState;
  note: ReactNode;
}

/** The steps that everything of a kind takes, in one row. */
export const Trail = ({ label, steps }: { label: string; steps: TrailStep[] }): ReactNode => (
  <ol className="trail-wide" aria-label={label}>
    {steps.map(({ name, state, note }, index) => (
      <li key={name} data-on={(state === 'done' && steps[index + 1]?.state === 'done') || undefined}>
        <span className="point" data-state={state}>
          <Icon of={icons[state]} size={14} />
        </span>
        <b>
          {name}
          <span className="sr">: {words[state]}</span>
        </b>
        {note}
      </li>
    ))}
  </ol>
);

export interface Happening {
  key: string;
  /** null: neither good nor bad. */
  ok: boolean | null;
  title: ReactNode;
  at: ReactNode;
  children?: ReactNode;
}

/** What happened to one thing, one below the other. */
export const Timeline = ({ label, of }: { label: string; of: Happening[] }): ReactNode => (
  <ol className="trail" aria-label={label}>
    {of.map(({ key, ok, title, at, children }) => (
      <li key={key} data-ok={ok ?? undefined}>
        <div className="trail-head">
          <b>
            {title}
            {ok === false ? <span className="sr"> (failed)</span> : null}
          </b>
          <span className="at">{at}</span>
        </div>
        {children ? <p>{children}</p> : null}
      </li>
    ))}
  </ol>
);
