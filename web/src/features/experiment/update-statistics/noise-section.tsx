import { useQuery } from '@tanstack/react-query'

import { metricsQuery } from '@/api/queries'
import { TableHead } from '@/lib/ui/table-head'

import { noisiestBlocks } from './noisiest-blocks'

const COLUMNS = ['Block', 'Expected before round 1', 'Measured in round 1']

/** The projection noise relative to the weights, for algorithms that project updates. */
export function NoiseSection({ id }: { id: string }) {
  const metrics = useQuery(metricsQuery(id))
  const blocks = noisiestBlocks(metrics.data?.series ?? [])
  if (blocks.length === 0) return null
  return (
    <section aria-labelledby="noise" data-testid="noise">
      <header className="section-header">
        <h2 id="noise">Projection noise</h2>
        <span className="muted small">In percent of the block's weights (RMS); the worst blocks first</span>
      </header>
      <div className="table-scroll tall" tabIndex={0} role="group" aria-label="Projection noise">
        <table>
          <TableHead columns={COLUMNS} numbers={COLUMNS.slice(1)} />
          <tbody>
            {blocks.map(({ block, expected, measured }) => (
              <tr key={block}>
                <th scope="row">{block}</th>
                <td className="number">{expected}</td>
                <td className="number">{measured}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
