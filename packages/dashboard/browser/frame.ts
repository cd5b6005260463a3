/**
 * What every page stands in, and the parts that most pages show. Each page imports all of it (`src/build.ts`): the bundler makes a
 * file for each combination of pages that share something, and so this is one file and not twenty.
 */
import './ui/confirm.tsx';
import './ui/facts.tsx';
import './ui/field.tsx';
import './ui/filter.tsx';
import './ui/form.tsx';
import './ui/list.tsx';
import './ui/numbers.tsx';
import './ui/page.tsx';
import './ui/people.tsx';
import './ui/tag.tsx';
import './ui/time.tsx';
import './api/names.ts';

export { App } from './app.tsx';
