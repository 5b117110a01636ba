import type { ReactNode } from 'react'

import { ActionDialog } from './action-dialog'
import type { Problem } from './notice'
import { RelativeTime } from './relative-time'
import { TableHead } from './table-head'

const COLUMNS = ['Token', 'Scope', 'Expires', 'Last used', '']

/** A table of tokens; its rows are `TokenRow`s. */
export function TokenTable({ children }: { children: ReactNode }) {
  return (
    <div className="table-scroll" tabIndex={0} role="group" aria-label="Tokens">
      <table>
        <TableHead columns={COLUMNS} />
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}

interface Props {
  token: { name: string; scopes: string[]; expires_at: string | null; used_at: string | null }
  now: number
  revoke: { run: () => Promise<boolean>; pending: boolean; problem: Problem | undefined }
}

export function TokenRow({ token, now, revoke }: Props) {
  const { name, scopes, expires_at: expires, used_at: used } = token
  return (
    <tr data-testid="token-row">
      <th scope="row">{name}</th>
      <td>{scopes.join(' and ')}</td>
      <td>{expires === null ? 'never' : <RelativeTime at={expires} now={now} />}</td>
      <td>{used === null ? 'never' : <RelativeTime at={used} now={now} />}</td>
      <td>
        <ActionDialog
          label="Revoke"
          title={`Revoke “${name}”?`}
          dismiss="Keep it"
          danger
          pending={revoke.pending}
          problem={revoke.problem}
          onSubmit={revoke.run}
        >
          <p>Programs that use it are refused from their next request on. This cannot be undone.</p>
        </ActionDialog>
      </td>
    </tr>
  )
}
