import { useInfiniteQuery, useQuery } from '@tanstack/react-query'

import { meQuery, onlyReads } from '@/api/people'
import { toProblem } from '@/api/problem'
import { participantsQuery } from '@/api/queries'
import type { Participant } from '@/api/types'
import { formatTime } from '@/lib/format'
import { MoreButton } from '@/lib/ui/more-button'
import { ProblemNotice } from '@/lib/ui/problem-notice'
import { SiteName } from '@/lib/ui/site-name'
import { StateChip } from '@/lib/ui/state-chip'
import { TableHead } from '@/lib/ui/table-head'

import { ApprovalButtons } from './approval-buttons'

const COLUMNS = ['Participant', 'State', 'Group', 'Joined', 'Last work']

/** The real participants, if any have joined. */
export function ParticipantsSection({ id }: { id: string }) {
  const query = useInfiniteQuery(participantsQuery(id))
  const mayDecide = onlyReads(useQuery(meQuery).data) === false
  if (query.error) return <ProblemNotice problem={toProblem(query.error)} />
  const participants = query.data?.pages.flatMap((page) => page.items) ?? []
  if (participants.length === 0) return null
  return (
    <section aria-labelledby="participants" data-testid="participants">
      <header className="section-header">
        <h2 id="participants">Real participants</h2>
      </header>
      <div className="table-scroll tall" tabIndex={0} role="region" aria-label="Real participants">
        <table>
          <TableHead columns={COLUMNS} />
          <tbody>
            {participants.map((participant) => (
              <ParticipantRow key={participant.id} id={id} participant={participant} mayDecide={mayDecide} />
            ))}
          </tbody>
        </table>
      </div>
      <MoreButton list={query} />
    </section>
  )
}

function ParticipantRow({ id, participant, mayDecide }: { id: string; participant: Participant; mayDecide: boolean }) {
  const { name, display_name: shown, state, group, revoked_for: reason } = participant
  const { created_at: joined, seen_at: seen } = participant
  return (
    <tr>
      <th scope="row">
        <SiteName name={shown} id={name} />
      </th>
      <td>
        <StateChip state={state} />
        {reason !== null && <span className="row-error">{reason}</span>}
        {state === 'pending' && mayDecide && <ApprovalButtons id={id} participant={participant} />}
      </td>
      <td>
        <bdi dir="auto">{group ?? '–'}</bdi>
      </td>
      <td className="nowrap">
        <time dateTime={joined}>{formatTime(joined)}</time>
      </td>
      <td className="nowrap">
        <time dateTime={seen}>{formatTime(seen)}</time>
      </td>
    </tr>
  )
}
