import { useQuery } from '@tanstack/react-query'

import { endSession, sessionsQuery } from '@/api/account'
import { toProblem } from '@/api/problem'
import type { BrowserSession } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { ProblemNotice } from '@/lib/ui/notice'
import { RelativeTime, useNow } from '@/lib/ui/relative-time'
import { TableHead } from '@/lib/ui/table-head'

const COLUMNS = ['Browser', 'Address', 'Since', 'Expires', '']

/** The browsers in which the user is signed in, and sign-in links that wait to be used. */
export function SessionsSection() {
  const { data, error } = useQuery(sessionsQuery)
  const now = useNow(10_000)
  return (
    <section className="tokens" aria-labelledby="sessions">
      <header className="section-header">
        <h2 id="sessions">Sessions</h2>
      </header>
      {error && <ProblemNotice problem={toProblem(error)} />}
      {data && data.items.length > 0 && (
        <div className="table-scroll" tabIndex={0} role="group" aria-label="Sessions">
          <table>
            <TableHead columns={COLUMNS} />
            <tbody>
              {data.items.map((session) => (
                <SessionRow key={session.id} session={session} now={now} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

function SessionRow({ session, now }: { session: BrowserSession; now: number }) {
  const end = useAction(() => endSession(session), { changes: sessionsQuery.queryKey })
  const { link, current, address, created_at: created, expires_at: expires } = session
  return (
    <tr data-testid="session-row">
      <th scope="row">{link ? 'Unused sign-in link' : current ? 'This browser' : 'Another browser'}</th>
      <td>{address ?? 'unknown'}</td>
      <td>
        <RelativeTime at={created} now={now} />
      </td>
      <td>
        <RelativeTime at={expires} now={now} />
      </td>
      <td>
        {!current && (
          <ActionDialog
            label="End"
            title={link ? 'Revoke this sign-in link?' : 'Sign this browser out?'}
            dismiss="Keep it"
            danger
            pending={end.pending}
            problem={end.problem}
            onSubmit={() => end.run()}
          >
            <p>
              {link ? 'The link stops working.' : 'The next request of this browser is refused.'} This cannot be undone.
            </p>
          </ActionDialog>
        )}
      </td>
    </tr>
  )
}
