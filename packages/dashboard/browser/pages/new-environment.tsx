import { Button, Group, Radio, NativeSelect, Stack } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { useLocation } from 'wouter';
import type { EnvironmentWithKey } from '@parley/protocol';
import { rememberKey } from '../api/first-key.ts';
import { useChange } from '../api/hooks.ts';
import type { Session } from '../api/session.ts';
import { Secret } from '../ui/copy.tsx';
import { Field } from '../ui/field.tsx';
import { Page } from '../ui/page.tsx';
import { Empty, Failed } from '../ui/states.tsx';

/** An environment is all that a tenant has: users, conversations, keys. */
export default function NewEnvironment({ session }: { session: Session }): ReactNode {
  const organizations = session.organizations.filter(({ role }) => role !== 'viewer');
  const [, navigate] = useLocation();
  const [organizationId, setOrganizationId] = useState(organizations[0]?.id ?? '');
  const [name, setName] = useState('');
  const [kind, setKind] = useState<'development' | 'production'>('development');
  const [made, setMade] = useState<EnvironmentWithKey | null>(null);
  const create = useChange('environments.create', {
    done: (environment) => {
      rememberKey(environment.id, environment.secretKey);
      setMade(environment);
    },
  });
  if (made)
    return (
      <Page title={`${made.name} is ready`} call={['environments.get', { environmentId: made.id }]}>
        <Stack maw={560}>
          <Secret value={made.secretKey} />
          <Group>
            <Button onClick={() => navigate(`/${made.id}`)}>I have saved it. Continue</Button>
          </Group>
        </Stack>
      </Page>
    );
  if (organizations.length === 0)
    return (
      <Empty title="You have no environment yet">
        Ask a developer or an owner of your organization to create one.
      </Empty>
    );
  return (
    <Page title="New environment" call={['environments.create', { organizationId, name, kind }]}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate({ organizationId, name, kind });
        }}
      >
        <Stack maw={480}>
          {organizations.length > 1 ? (
            <NativeSelect
              label="Organization"
              data={organizations.map((org) => ({ value: org.id, label: org.name }))}
              value={organizationId}
              onChange={(event) => setOrganizationId(event.currentTarget.value)}
            />
          ) : null}
          <Field
            label="Name"
            placeholder="Shop"
            required
            maxLength={200}
            value={name}
            set={setName}
            data-autofocus
          />
          <Radio.Group
            label="Kind"
            value={kind}
            onChange={(value) => setKind(value as 'development' | 'production')}
          >
            <Stack gap="xs" mt={4}>
              <Radio value="development" label="development" description="For tests: unsigned tokens work." />
              <Radio
                value="production"
                label="production"
                description="Only signed tokens work. You type the name to confirm a deletion."
              />
            </Stack>
          </Radio.Group>
          {create.error ? <Failed error={create.error} /> : null}
          <Group>
            <Button type="submit" loading={create.isPending}>
              Create
            </Button>
          </Group>
        </Stack>
      </form>
    </Page>
  );
}
