import { useQuery } from '@tanstack/react-query'

import { metricsQuery } from '@/api/queries'
import { DefinitionItem } from '@/lib/ui/definition-item'

import { costFacts } from './cost'

export function CostSection({ id }: { id: string }) {
  const metrics = useQuery(metricsQuery(id))
  const facts = costFacts(metrics.data?.series ?? [])
  if (facts.length === 0) return null
  return (
    <section className="cost" aria-labelledby="cost" data-testid="cost">
      <header className="section-header">
        <h2 id="cost">Cost per round</h2>
      </header>
      <dl className="facts boxed">
        {facts.map(({ term, value }) => (
          <DefinitionItem key={term} term={term}>
            {value}
          </DefinitionItem>
        ))}
      </dl>
    </section>
  )
}
