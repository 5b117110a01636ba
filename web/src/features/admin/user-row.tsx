import { Link } from '@tanstack/react-router'

import type { User } from '@/api/types'
import { useAction } from '@/api/use-action'
import { changeUser, USERS_KEY } from '@/api/users'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { RelativeTime } from '@/lib/ui/relative-time'
import { StateChip } from '@/lib/ui/state-chip'

import { PasswordButton } from './password-button'
import { RoleButton } from './role-button'

interface Props {
  user: User
  /** True for the signed-in user, who cannot disable the own account. */
  self: boolean
  now: number
}

/** The user of the admin token, who is always an enabled administrator. */
const INSTALLATION = 'admin'

const changes = USERS_KEY

export function UserRow({ user, self, now }: Props) {
  const { id, name, role, enabled, issuer, created_at: created } = user
  return (
    <tr data-testid="user-row">
      <th scope="row">
        {name} {self && <span className="muted small">you</span>}
      </th>
      <td>{role}</td>
      <td>
        <StateChip state={enabled ? 'enabled' : 'disabled'} />
      </td>
      <td>{issuer ?? 'here'}</td>
      <td className="nowrap">
        <RelativeTime at={created} now={now} />
      </td>
      <td>
        <span className="row-actions">
          <Link to="/people" search={{ tab: 'audit', actor: id }}>
            {self ? 'Your actions' : `Actions of ${name}`}
          </Link>
          <Link to="/people" search={{ user: id }}>
            Tokens
          </Link>
          {id !== INSTALLATION && !self && <Buttons user={user} />}
        </span>
      </td>
    </tr>
  )
}

function Buttons({ user }: { user: User }) {
  const { name, enabled, issuer } = user
  const enable = useAction(() => changeUser(user, { enabled: true }), { changes, toasted: `Enabling ${name}` })
  const disable = useAction(() => changeUser(user, { enabled: false }), { changes })
  return (
    <>
      <RoleButton user={user} />
      {issuer === null && <PasswordButton user={user} />}
      {enabled ? (
        <ActionDialog
          label="Disable"
          title={`Disable “${name}”?`}
          dismiss="Keep it"
          danger
          pending={disable.pending}
          problem={disable.problem}
          onSubmit={() => disable.run(undefined)}
        >
          <p>
            The user is signed out everywhere at once. The user's tokens are refused until the account is enabled again.
          </p>
        </ActionDialog>
      ) : (
        <button type="button" className="button" disabled={enable.pending} onClick={() => void enable.run(undefined)}>
          Enable
        </button>
      )}
    </>
  )
}
