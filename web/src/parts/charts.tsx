// Small charts drawn as SVG: bars in parts, and a line.
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** The width that a chart has, so that its text is never stretched. */
export function useWidth(): [preact.RefObject<HTMLDivElement>, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => box.current && setWidth(box.current.clientWidth));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  return [box, width];
}

export interface Bar { label: string; parts: { name: string; value: number }[] }

export function Bars({ bars, text, label, height = 150 }: { bars: Bar[]; text: (value: number) => string; label: string; height?: number }) {
  const [box, width] = useWidth();
  const most = Math.max(1e-9, ...bars.map((bar) => bar.parts.reduce((sum, part) => sum + part.value, 0)));
  const left = 52, bottom = 18, top = 8;
  const step = Math.max((width - left - 4) / Math.max(bars.length, 1), 0.5);
  const scale = (value: number): number => (value / most) * (height - bottom - top);
  return (
    <div ref={box} class="chart">
      <svg width={width} height={height} role="img" aria-label={label}>
        {[0, 0.5, 1].map((at) => (
          <g key={at}>
            <line class="grid" x1={left} x2={width} y1={height - bottom - scale(most * at)} y2={height - bottom - scale(most * at)} />
            <text class="tick" x={left - 6} y={height - bottom - scale(most * at) + 4} text-anchor="end">{text(most * at)}</text>
          </g>
        ))}
        {bars.map((bar, at) => {
          let y = height - bottom;
          return (
            <g key={bar.label}>
              <title>{`${bar.label}: ${bar.parts.filter((one) => one.value > 0).map((one) => `${one.name.replace("_", " ")} ${text(one.value)}`).join(", ") || text(0)}`}</title>
              {bar.parts.map((part) => {
                const tall = scale(part.value);
                y -= tall;
                return <rect key={part.name} class={`part ${part.name}`} x={left + at * step} y={y} width={Math.max(step - Math.min(step * 0.25, 2), 0.6)} height={Math.max(tall, 0)} />;
              })}
            </g>
          );
        })}
        {bars.length > 0 && <text class="tick" x={left} y={height - 4}>{bars[0]!.label}</text>}
        {bars.length > 1 && <text class="tick" x={width} y={height - 4} text-anchor="end">{bars.at(-1)!.label}</text>}
      </svg>
    </div>
  );
}

export function Line({ points, text, label, height = 120 }: { points: { x: number; y: number; label: string }[]; text: (value: number) => string; label: string; height?: number }) {
  const [box, width] = useWidth();
  const left = 60, bottom = 18, top = 8;
  const most = Math.max(1e-9, ...points.map((one) => one.y));
  const first = points[0]?.x ?? 0, last = points.at(-1)?.x ?? 1;
  const at = (point: { x: number; y: number }): string =>
    `${(left + ((point.x - first) / Math.max(last - first, 1)) * (width - left - 6)).toFixed(1)},${(height - bottom - (point.y / most) * (height - bottom - top)).toFixed(1)}`;
  const path = points.map(at).join(" L");
  return (
    <div ref={box} class="chart">
      <svg width={width} height={height} role="img" aria-label={label}>
        {[0, 1].map((part) => (
          <g key={part}>
            <line class="grid" x1={left} x2={width} y1={height - bottom - part * (height - bottom - top)} y2={height - bottom - part * (height - bottom - top)} />
            <text class="tick" x={left - 6} y={height - bottom - part * (height - bottom - top) + 4} text-anchor="end">{text(most * part)}</text>
          </g>
        ))}
        {points.length > 1 && <path class="area" d={`M${left},${height - bottom} L${path} L${width - 6},${height - bottom} Z`} />}
        {points.length > 1 && <path class="line" d={`M${path}`} />}
        {points.length > 0 && <text class="tick" x={left} y={height - 4}>{points[0]!.label}</text>}
        {points.length > 1 && <text class="tick" x={width} y={height - 4} text-anchor="end">{points.at(-1)!.label}</text>}
      </svg>
    </div>
  );
}

export const Legend = ({ names }: { names: string[] }) => (
  <span class="legend">{names.map((name) => <span key={name}><i class={`key ${name}`} />{name.replace("_", " ")}</span>)}</span>
);
