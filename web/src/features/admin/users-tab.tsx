import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'

import { changeUser, revokeUserToken, USERS_KEY, usersQuery, userTokensQuery } from '@/api/admin'
import { toProblem } from '@/api/problem'
import type { CurrentUser, Token, User } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { MoreButton } from '@/lib/ui/more-button'
import { ProblemNotice } from '@/lib/ui/notice'
import { RelativeTime, useNow } from '@/lib/ui/relative-time'
import { StateChip } from '@/lib/ui/state-chip'
import { TableHead } from '@/lib/ui/table-head'
import { TokenRow, TokenTable } from '@/lib/ui/token-table'

import { CreateUserButton, isManaged, PasswordButton, RoleButton } from './user-buttons'

const COLUMNS = ['Name', 'Role', 'State', 'Signs in', 'Since', '']

/** Everybody who has an account. */
export function UsersTab({ me, user }: { me: CurrentUser; user: string | undefined }) {
  const list = useInfiniteQuery(usersQuery)
  const users = list.data?.pages.flatMap((page) => page.items)
  const now = useNow(10_000)
  return (
    <section aria-labelledby="users">
      <header className="section-header">
        <h2 id="users">Users</h2>
        <CreateUserButton />
      </header>
      {list.error && <ProblemNotice problem={toProblem(list.error)} />}
      {users && (
        <div className="table-scroll" tabIndex={0} role="group" aria-label="Users">
          <table>
            <TableHead columns={COLUMNS} />
            <tbody>
              {users.map((user) => (
                <UserRow key={user.id} user={user} me={me.id} now={now} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <MoreButton list={list} />
      {user !== undefined && (
        <UserTokens key={user} user={user} name={users?.find(({ id }) => id === user)?.name ?? user} now={now} />
      )}
    </section>
  )
}

interface Props {
  user: User
  /** The signed-in user's id. */
  me: string
  now: number
}

const changes = USERS_KEY

function UserRow({ user, me, now }: Props) {
  const { id, name, role, enabled, issuer, created_at: created } = user
  const self = id === me
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
          {isManaged(user, me) && <UserButtons user={user} />}
        </span>
      </td>
    </tr>
  )
}

function UserButtons({ user }: { user: User }) {
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

/** The tokens of a user. */
function UserTokens({ user, name, now }: { user: string; name: string; now: number }) {
  const { data, error } = useQuery(userTokensQuery(user))
  return (
    <section aria-labelledby="user-tokens" data-testid="user-tokens">
      <header className="section-header">
        <h2 id="user-tokens">Tokens of {name}</h2>
        <Link to="/people" className="button">
          Close
        </Link>
      </header>
      {error && <ProblemNotice problem={toProblem(error)} />}
      {data?.items.length === 0 && <p className="muted">This user has no tokens.</p>}
      {data && data.items.length > 0 && (
        <TokenTable>
          {data.items.map((token) => (
            <UserToken key={token.id} user={user} token={token} now={now} />
          ))}
        </TokenTable>
      )}
    </section>
  )
}

function UserToken({ user, token, now }: { user: string; token: Token; now: number }) {
  const revoke = useAction(() => revokeUserToken(user, token), { changes: userTokensQuery(user).queryKey })
  return <TokenRow token={token} now={now} revoke={revoke} />
}
