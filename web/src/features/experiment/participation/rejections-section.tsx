import { useQuery } from '@tanstack/react-query'

import { rejectionsQuery } from '@/api/queries'
import { type Experiment, isFinished, type Rejection } from '@/api/types'
import { formatCount, formatTime } from '@/lib/format'
import { SiteName } from '@/lib/ui/site-name'
import { TableHead } from '@/lib/ui/table-head'

const COLUMNS = ['Round', 'Participant', 'Refused', 'Reason', 'Latest detail', 'Latest']

/** Uploads that were refused, if there were any: none of them moved the model. */
export function RejectionsSection({ experiment: { id, state } }: { experiment: Experiment }) {
  const { data: rejections = [] } = useQuery(rejectionsQuery(id, !isFinished(state)))
  if (rejections.length === 0) return null
  const total = rejections.reduce((sum, { count }) => sum + count, 0)
  return (
    <section aria-labelledby="rejections" data-testid="rejections">
      <header className="section-header">
        <h2 id="rejections">Refused uploads</h2>
        <span className="muted small">{formatCount(total)} in all; none of them changed the model</span>
      </header>
      <div className="table-scroll tall" tabIndex={0} role="region" aria-label="Refused uploads">
        <table>
          <TableHead columns={COLUMNS} numbers={['Round', 'Refused']} />
          <tbody>
            {rejections.toReversed().map((rejection) => (
              <RejectionRow key={`${rejection.round} ${rejection.participant} ${rejection.code}`} {...rejection} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function RejectionRow({ round, participant, display_name: name, count, code, detail, updated_at: last }: Rejection) {
  return (
    <tr>
      <td className="number">{round}</td>
      <th scope="row">
        <SiteName name={name} id={participant} />
      </th>
      <td className="number">{formatCount(count)}</td>
      <td>
        <code>{code}</code>
      </td>
      <td className="cell-detail">{detail}</td>
      <td className="nowrap">
        <time dateTime={last}>{formatTime(last)}</time>
      </td>
    </tr>
  )
}
