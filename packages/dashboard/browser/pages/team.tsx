import { Alert, Button, Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { AccountRole, OrganizationMember } from '@parley/protocol';
import { useCall, useChange, useRows } from '../api/hooks.ts';
import { useMay, useOrganization } from '../api/roles.ts';
import { useSession } from '../api/session.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Secret } from '../ui/copy.tsx';
import { Field } from '../ui/field.tsx';
import { List } from '../ui/list.tsx';
import { Page, Section } from '../ui/page.tsx';
import { SecretDialog } from '../ui/secret-dialog.tsx';
import { Empty, Failed } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';
import { Tag } from '../ui/tag.tsx';

const accountRoles: AccountRole[] = ['owner', 'admin', 'developer', 'viewer'];

export default function Team(): ReactNode {
  const organization = useOrganization();
  if (!organization) return <Empty title="You belong to no organization" />;
  return (
    <Page
      title={`Team of ${organization.name}`}
      call={['organizations.listMembers', { organizationId: organization.id }]}
    >
      <People organizationId={organization.id} />
      <Invitations organizationId={organization.id} />
      <Organization key={organization.id} organization={organization} />
    </Page>
  );
}

function Organization({ organization }: { organization: { id: string; name: string } }): ReactNode {
  const organizationId = organization.id;
  const [name, setName] = useState(organization.name);
  const rename = useChange('organizations.update');
  const leave = useChange('organizations.leave', { done: () => location.assign('/dashboard') });
  const remove = useChange('organizations.delete', { done: () => location.assign('/dashboard') });
  return (
    <Section title="Organization">
      {useMay('organizations.update') ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            rename.mutate({ organizationId, name });
          }}
        >
          <Group align="flex-end">
            <Field label="Name of the organization" required maxLength={200} value={name} set={setName} />
            <Button type="submit" variant="default" loading={rename.isPending}>
              Rename
            </Button>
            <span role="status">{rename.isSuccess ? 'Renamed.' : ''}</span>
          </Group>
        </form>
      ) : null}
      {rename.error ? <Failed error={rename.error} /> : null}
      <Group>
        <ConfirmButton
          label="Leave the organization"
          title={`Leave ${organization.name}?`}
          typed={null}
          pending={leave.isPending}
          error={leave.error}
          onConfirm={() => leave.mutateAsync({ organizationId })}
        >
          You lose access at once. You need an invitation to come back.
        </ConfirmButton>
        {useMay('organizations.delete') ? (
          <ConfirmButton
            label="Delete the organization"
            title={`Delete ${organization.name}?`}
            typed={organization.name}
            pending={remove.isPending}
            error={remove.error}
            onConfirm={() => remove.mutateAsync({ organizationId, name: organization.name })}
          >
            All its environments end at once: keys and tokens are refused, sockets close, and users,
            conversations, messages and files are removed. It cannot be undone.
          </ConfirmButton>
        ) : null}
      </Group>
    </Section>
  );
}

function People({ organizationId }: { organizationId: string }): ReactNode {
  const session = useSession().data;
  const may = useMay('organizations.updateMember');
  const people = useRows('organizations.listMembers', { organizationId });
  const update = useChange('organizations.updateMember');
  const remove = useChange('organizations.removeMember');
  const mayChange = (person: OrganizationMember): boolean => may && person.accountId !== session?.account.id;
  return (
    <Section title="People">
      {update.error ? <Failed error={update.error} /> : null}
      <List
        what="people"
        pages={people}
        rowKey={(person) => person.accountId}
        columns={[
          { title: 'E-mail', cell: (person) => person.email },
          { title: 'Name', cell: (person) => person.name, wide: true },
          {
            title: 'Role',
            cell: (person) =>
              mayChange(person) ? (
                <NativeSelect
                  aria-label={`Role of ${person.email}`}
                  data={accountRoles}
                  value={person.role}
                  size="xs"
                  w={120}
                  onChange={({ currentTarget: { value: role } }) =>
                    update.mutate({ organizationId, accountId: person.accountId, role: role as AccountRole })
                  }
                />
              ) : (
                person.role
              ),
          },
          {
            title: 'Second factor',
            cell: (person) => (person.twoFactor ? 'on' : <Tag tone="warn">off</Tag>),
            wide: true,
          },
          { title: 'Since', cell: (person) => <Time at={person.joinedAt} />, wide: true },
          {
            title: '',
            cell: (person) =>
              mayChange(person) ? (
                <ConfirmButton
                  label="Remove"
                  title={`Remove ${person.email}?`}
                  typed={null}
                  pending={remove.isPending}
                  error={remove.error}
                  onConfirm={() => remove.mutateAsync({ organizationId, accountId: person.accountId })}
                >
                  The person loses access at once.
                </ConfirmButton>
              ) : null,
          },
        ]}
        empty={<Empty title="Nobody" />}
      />
      <Text size="sm" c="dimmed">
        Owners may do everything; admins may do everything except change owners; developers manage
        environments, keys and webhooks and read messages; viewers read, but no messages or secrets.
      </Text>
    </Section>
  );
}

function Invitations({ organizationId }: { organizationId: string }): ReactNode {
  const may = useMay('invitations.create');
  const invitations = useCall('invitations.list', { organizationId }, { enabled: may });
  const withdraw = useChange('invitations.delete');
  if (!may) return null;
  return (
    <Section title="Open invitations" actions={<Invite organizationId={organizationId} />}>
      {invitations.error ? <Failed error={invitations.error} /> : null}
      {withdraw.error ? <Failed error={withdraw.error} /> : null}
      {invitations.data?.data.length === 0 ? <Empty title="No open invitations" /> : null}
      {invitations.data?.data.map((invitation) => (
        <Group key={invitation.id} justify="space-between">
          <span>
            {invitation.email} as {invitation.role}, until <Time at={invitation.expiresAt} />
          </span>
          <Button
            size="compact-xs"
            variant="default"
            onClick={() => withdraw.mutate({ organizationId, invitationId: invitation.id })}
          >
            Withdraw
          </Button>
        </Group>
      ))}
    </Section>
  );
}

function Invite({ organizationId }: { organizationId: string }): ReactNode {
  const [opened, setOpened] = useState(false);
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<AccountRole>('developer');
  const invite = useChange('invitations.create');
  const close = (): void => {
    setOpened(false);
    setEmail('');
    invite.reset();
  };
  return (
    <>
      <Button onClick={() => setOpened(true)}>Invite a person</Button>
      <SecretDialog
        opened={opened}
        onClose={close}
        title="Invite a person"
        secret={Boolean(invite.data?.link)}
      >
        {invite.data ? (
          <Stack>
            {invite.data.link ? (
              <Secret value={invite.data.link}>
                Send this link to the person you invited. It works once, for 7 days.
              </Secret>
            ) : (
              <Alert color="teal" variant="light">
                The invitation was sent to {invite.data.email}.
              </Alert>
            )}
            {invite.data.link ? null : <Button onClick={close}>Done</Button>}
          </Stack>
        ) : (
          <form
            onSubmit={(event) => {
              event.preventDefault();
              invite.mutate({ organizationId, email, role });
            }}
          >
            <Stack>
              <TextInput
                label="E-mail"
                type="email"
                required
                value={email}
                onChange={(event) => setEmail(event.currentTarget.value)}
                data-autofocus
              />
              <NativeSelect
                label="Role"
                data={accountRoles}
                value={role}
                onChange={({ currentTarget: { value } }) => setRole(value as AccountRole)}
              />
              {invite.error ? <Failed error={invite.error} /> : null}
              <Button type="submit" loading={invite.isPending}>
                Invite
              </Button>
            </Stack>
          </form>
        )}
      </SecretDialog>
    </>
  );
}
