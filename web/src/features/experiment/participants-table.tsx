import { useInfiniteQuery } from '@tanstack/react-query'

import { toProblem } from '@/api/problem'
import { contributionsQuery } from '@/api/queries'
import type { Contribution } from '@/api/types'
import { formatBytes, formatLoss, formatSeconds } from '@/lib/format'
import { Digest } from '@/lib/ui/digest'
import { ProblemNotice } from '@/lib/ui/problem-notice'
import { StateChip } from '@/lib/ui/state-chip'

const COLUMNS = [
  'Participant',
  'Kind',
  'State',
  'Examples',
  'Train loss',
  'Seconds',
  'Sent',
  'Received',
  'Contribution',
]

export function ParticipantsTable({ id, round }: { id: string; round: number }) {
  const query = useInfiniteQuery(contributionsQuery(id, round))
  if (query.error) return <ProblemNotice problem={toProblem(query.error)} />
  return (
    <>
      <div className="table-scroll tall" tabIndex={0} role="region" aria-label={`Participants of round ${round}`}>
        <table>
          <thead>
            <tr>
              {COLUMNS.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {query.data?.pages
              .flatMap((page) => page.items)
              .map((contribution) => (
                <ContributionRow
                  key={`${contribution.attempt} ${contribution.participant}`}
                  contribution={contribution}
                />
              ))}
          </tbody>
        </table>
      </div>
      {query.hasNextPage && (
        <button
          type="button"
          className="button"
          disabled={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          Show more
        </button>
      )}
    </>
  )
}

function ContributionRow({ contribution }: { contribution: Contribution }) {
  const {
    participant,
    attempt,
    kind,
    state,
    error,
    examples,
    seconds,
    size,
    bytes_down: down,
    digest,
    metrics,
  } = contribution
  return (
    <tr>
      <th scope="row">
        {participant}
        {attempt > 1 && <span className="muted small"> attempt {attempt}</span>}
      </th>
      <td>{kind}</td>
      <td>
        <StateChip state={state} />
        {error && (
          <span className="row-error">
            {error.title}: {error.detail}
          </span>
        )}
      </td>
      <td className="number">{examples ?? '–'}</td>
      <td className="number">{metrics.train_loss === undefined ? '–' : formatLoss(metrics.train_loss)}</td>
      <td className="number">{seconds === null ? '–' : formatSeconds(seconds)}</td>
      <td className="number">{size === null ? '–' : formatBytes(size)}</td>
      <td className="number">{down === null ? '–' : formatBytes(down)}</td>
      <td>
        <Digest value={digest} />
      </td>
    </tr>
  )
}
