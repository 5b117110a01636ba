import { useInfiniteQuery } from '@tanstack/react-query'

import { toProblem } from '@/api/problem'
import type { CurrentUser } from '@/api/types'
import { usersQuery } from '@/api/users'
import { MoreButton } from '@/lib/ui/more-button'
import { ProblemNotice } from '@/lib/ui/notice'
import { useNow } from '@/lib/ui/relative-time'
import { TableHead } from '@/lib/ui/table-head'

import { CreateUserButton } from './create-user-button'
import { UserRow } from './user-row'
import { UserTokens } from './user-tokens'

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
        <div className="table-scroll" tabIndex={0} role="region" aria-label="Users">
          <table>
            <TableHead columns={COLUMNS} />
            <tbody>
              {users.map((user) => (
                <UserRow key={user.id} user={user} self={user.id === me.id} now={now} />
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
