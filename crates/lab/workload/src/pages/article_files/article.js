'use strict';

// The date as the reader's page shows it, and the chart of the text.
const written = document.getElementById('written');
written.textContent = dayjs(written.dateTime).format('D MMMM YYYY');

const steps = [1, 2, 4, 6, 8, 10, 12, 16, 20];
const lines = [['Across a country', 0.02, '#5b7f5a'], ['Across an ocean', 0.09, '#3f6e96'], ['By satellite', 0.65, '#9a4a22']];
new Chart(document.getElementById('chart'), {
  type: 'line',
  data: {
    labels: steps,
    datasets: lines.map(([label, roundTrip, color]) => ({
      label,
      data: steps.map((count) => count * roundTrip),
      borderColor: color,
      backgroundColor: color,
      tension: 0.2,
    })),
  },
  options: {
    animation: false,
    responsive: false,
    scales: { x: { title: { display: true, text: 'dependent steps' } }, y: { title: { display: true, text: 'seconds' } } },
  },
});
